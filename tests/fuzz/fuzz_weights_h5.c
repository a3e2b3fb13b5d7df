/* Any bytes as model.weights.h5: checked, and every array read. */
#include "base/memory.h"
#include "io/weights_h5.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_weights *w = NULL;
    if (keel_weights_decode(&w, data, size) < 0) return 0;
    for (int64_t i = 0; i < keel_weights_count(w); i++) {
        const keel_weight *a = keel_weights_at(w, i);
        const size_t count = (size_t)keel_shape_count(&a->shape);
        if (count > size || keel_weights_find(w, a->path) != a) __builtin_trap();
        void *out = keel_calloc(count, keel_dtype_size(a->dtype));
        if (out) keel_weight_copy(a, out);
        keel_free(out);
    }
    keel_weights_destroy(w);
    return 0;
}
