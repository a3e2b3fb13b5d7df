/* Any bytes as a .keras file; the first byte says how they are meant: the whole archive, or one
 * that is made here of a config and a weights file, so that mutations get past the check sums. */
#include "base/memory.h"
#include "io/file.h"
#include "io/zip.h"
#include "model/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1, then the length of the config (2 bytes, little-endian), the config, the weights. */
static keel_status archive(const char *path, const uint8_t *data, size_t size)
{
    if (size < 2) return keel_file_write(path, data, size);
    const size_t said = (size_t)data[0] | (size_t)data[1] << 8;
    const size_t n = said < size - 2 ? said : size - 2;
    const keel_zip_member members[] = {
        { "metadata.json", "{}", 2 },
        { "config.json", data + 2, n },
        { "model.weights.h5", data + 2 + n, size - 2 - n },
    };
    return keel_zip_write(path, members, 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    keel_model *m = NULL;
    if (size < 1) return 0;
    if (!path[0]) snprintf(path, sizeof path, "/tmp/fuzz_keras.%ld.keras", (long)getpid());
    const keel_status s = data[0] == 1 ? archive(path, data + 1, size - 1)
                                       : keel_file_write(path, data + 1, size - 1);
    if (s < 0) return 0;
    if (keel_model_load(&m, path) >= 0 && keel_model_save(m, path) < 0) __builtin_trap();
    keel_model_destroy(m);
    unlink(path);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
