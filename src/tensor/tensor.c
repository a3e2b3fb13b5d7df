/* Host tensors: a checked shape and one zeroed block. */
#include "keel/tensor.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

keel_status keel_tensor_create(keel_tensor *out, keel_dtype dtype, const keel_shape *shape)
{
    const size_t size = keel_dtype_size(dtype);
    if (size == 0) return keel_fail(KEEL_EARG, "a tensor of unknown dtype %d", (int)dtype);
    KEEL_TRY(keel_shape_check(shape, size));
    void *data = keel_aligned_calloc((size_t)keel_shape_count(shape), size);
    if (!data) return KEEL_ENOMEM;
    *out = (keel_tensor){ .dtype = dtype, .shape = *shape, .data = data };
    return KEEL_OK;
}

void keel_tensor_free(keel_tensor *t)
{
    if (!t) return;
    keel_free(t->data);
    *t = (keel_tensor){ 0 };
}
