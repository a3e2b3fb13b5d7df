/* The row of a source that takes most memory to read, of those that were looked at so far. */
#ifndef KEEL_DATA_LARGEST_H
#define KEEL_DATA_LARGEST_H
#include <stdint.h>

typedef struct keel_largest keel_largest;

keel_largest *keel_largest_create(void); /* NULL: out of memory */
void keel_largest_destroy(keel_largest *l);

/* Row `row` takes so many bytes. Any thread. */
void keel_largest_note(keel_largest *l, int64_t n_bytes, int64_t row);

/* The bytes of the largest row, and its number (NULL: not asked for); 0, -1: there is none. */
int64_t keel_largest_bytes(const keel_largest *l, int64_t *row);

#endif
