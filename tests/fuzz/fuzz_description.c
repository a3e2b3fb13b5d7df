/* Any bytes as the description of a stream: what is read can be described, and is read again. */
#include "keel/described.h"
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_dataset *d, *again;
    keel_tensor text, same;
    if (keel_dataset_from_description(&d, data, size) < 0) return 0;
    if (keel_dataset_describe(d, &text) != KEEL_OK) __builtin_trap();
    if (keel_dataset_from_description(&again, text.data, (size_t)text.shape.dim[0]) < 0)
        __builtin_trap();
    if (keel_dataset_describe(again, &same) != KEEL_OK) __builtin_trap();
    if (same.shape.dim[0] != text.shape.dim[0] ||
        memcmp(same.data, text.data, (size_t)text.shape.dim[0]))
        __builtin_trap();
    keel_tensor_free(&text);
    keel_tensor_free(&same);
    keel_dataset_destroy(d);
    keel_dataset_destroy(again);
    return 0;
}
