/* Any bytes as a .npy. */
#include "io/npy.h"
#include "tensor/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_tensor t = { 0 };
    if (keel_npy_decode(&t, data, size, "fuzz") >= 0 &&
        keel_shape_count(&t.shape) * 2 > (int64_t)size * 16)
        __builtin_trap(); /* more elements than the bytes can hold */
    keel_tensor_free(&t);
    return 0;
}
