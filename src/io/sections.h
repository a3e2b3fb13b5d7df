/* Named ranges of bytes in one block, with a checksum: the member of a .keras file that has what
 * Keras has no place for when training is to go on.
 *
 *   "KEELST01"   8 bytes
 *   checksum     u64, keel_fingerprint of all that follows
 *   count        u64
 *   count times  name, 32 bytes, zeros at its end; begin u64; bytes u64
 *   data         each section begins at a multiple of 8 bytes from the begin of the block
 *
 * Numbers are little-endian. The reader trusts none of them. */
#ifndef KEEL_IO_SECTIONS_H
#define KEEL_IO_SECTIONS_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { KEEL_SECTIONS_MAX = 4096, KEEL_SECTION_NAME = 32 };

typedef struct keel_section {
    char name[KEEL_SECTION_NAME];
    const void *data; /* borrowed */
    size_t n_bytes;
} keel_section;

typedef struct keel_sections {
    keel_section *at; /* [count] */
    int64_t count;
} keel_sections;

/* The caller frees *out with keel_free. KEEL_EARG: too many sections, or names repeat. */
keel_status keel_sections_encode(const keel_section *list, int64_t count, void **out,
                                 size_t *n_bytes);

/* The sections point into `data`, which is aligned to 8 bytes and outlives them. KEEL_EFORMAT: it
 * is damaged. */
keel_status keel_sections_decode(keel_sections *out, const void *data, size_t n_bytes);
void keel_sections_free(keel_sections *s);

const keel_section *keel_sections_find(const keel_sections *s, const char *name); /* or NULL */

#endif
