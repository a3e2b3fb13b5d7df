/* Any text as a pattern of file names, with braces. */
#include "base/memory.h"
#include "data/file_list.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LONGEST = 200, DIGITS = 3 };
    keel_file_list l = { 0 };
    char pattern[LONGEST + 1];
    size_t digits = 0;
    if (size > LONGEST || memchr(data, '/', size)) return 0; /* this folder only */
    for (size_t i = 0; i < size; i++) {                      /* a million names take their time */
        digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : 0;
        if (digits > DIGITS) return 0;
    }
    memcpy(pattern, data, size);
    pattern[size] = 0;
    keel_file_list_claims(pattern, keel_tar_endings);
    keel_file_list_claims_shards(pattern, keel_tfrecord_endings);
    if (keel_file_list_find(&l, pattern, keel_tar_endings) >= 0 && l.n < 1) __builtin_trap();
    keel_file_list_free(&l);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
