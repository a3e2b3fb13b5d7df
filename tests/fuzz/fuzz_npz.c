/* Any bytes as a zip archive: every member is read whole, and as an array. */
#include "base/memory.h"
#include "io/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_zip *z = NULL;
    if (keel_zip_open_memory(&z, data, size, "fuzz") < 0) return 0;
    for (int64_t i = 0; i < keel_zip_count(z) && i < 8; i++) {
        void *bytes = NULL;
        size_t n = 0;
        if (keel_zip_read(z, keel_zip_name(z, i), 1 << 24, &bytes, &n) >= 0) keel_free(bytes);
    }
    const int64_t arrays = keel_npz_count(z);
    for (int64_t i = 0; i < arrays && i < 8; i++) {
        char name[600];
        keel_tensor t = { 0 };
        if (keel_npz_name(z, i, name, sizeof name) < 0) __builtin_trap();
        (void)keel_npz_read(&t, z, name);
        keel_tensor_free(&t);
        keel_npy_texts texts = { 0 };
        (void)keel_npz_read_texts(&texts, z, name);
        keel_npy_texts_free(&texts);
    }
    keel_zip_close(z);
    return 0;
}
