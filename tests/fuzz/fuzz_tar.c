/* Any bytes as a tar archive: as they are, and with the checksum of every block that may be a
 * header made right. */
#include "record_rows.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const inputs[] = { "x=npy;txt;png", "n=cls" };
    enum { BLOCK = 512, SUM = 148, MAGIC = 257 };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = o.width = 4;
    rows_read(rows_file(data, size, ".tar"), &o);
    unsigned char *out = malloc(size + 3 * BLOCK);
    memset(out, 0, size + 3 * BLOCK);
    if (size) memcpy(out, data, size);
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
        unsigned sum = 0;
        if (memcmp(out + at + MAGIC, "ust", 3) != 0) continue;
        memset(out + at + SUM, ' ', 8);
        for (int i = 0; i < BLOCK; i++) sum += out[at + (size_t)i];
        snprintf((char *)out + at + SUM, 8, "%06o", sum & 0777777);
    }
    o.inputs = inputs;
    o.n_input = 2;
    o.label_mode = KEEL_LABEL_NONE;
    rows_read(rows_file(out, (size + BLOCK - 1) / BLOCK * BLOCK + 2 * BLOCK, ".tar"), &o);
    free(out);
    return 0;
}
