/* Any bytes as an idx file, plain or gzipped. */
#include "io/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_tensor t = { 0 };
    (void)keel_idx_decode(&t, data, size, "fuzz");
    keel_tensor_free(&t);
    return 0;
}
