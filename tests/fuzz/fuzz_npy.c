/* Any bytes as a .npy, of numbers and of texts. */
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
    keel_npy_texts texts = { 0 };
    if (keel_npy_decode_texts(&texts, data, size, "fuzz") >= 0 && texts.count > (int64_t)size)
        __builtin_trap();
    keel_npy_texts_free(&texts);
    return 0;
}
