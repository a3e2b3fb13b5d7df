/* Any bytes as the member keel.state of a checkpoint: with their own checksum, and with the right
 * one, so that what is behind it is reached. */
#include "base/hash.h"
#include "base/memory.h"
#include "train/checkpoint.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const uint8_t *data, size_t size, int summed)
{
    keel_checkpoint c;
    unsigned char *block = keel_calloc(size + 1, 1);
    if (!block) return;
    memcpy(block, data, size);
    if (summed && size >= 16) {
        const uint64_t sum = keel_fingerprint(block + 16, size - 16);
        memcpy(block, "KEELST01", 8);
        memcpy(block + 8, &sum, sizeof sum);
    }
    if (keel_checkpoint_decode(&c, block, size) >= 0) {
        for (int64_t i = 0; i < c.sections.count; i++) /* every byte of a section can be read */
            if (c.sections.at[i].n_bytes)
                (void)keel_fingerprint(c.sections.at[i].data, c.sections.at[i].n_bytes);
        keel_checkpoint_free(&c);
    } else {
        keel_free(block);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size, 0);
    decode(data, size, 1);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
