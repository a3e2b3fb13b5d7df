/* Buffers that whoever reads rows keeps from row to row, so that reading allocates only while they
 * grow. */
#ifndef KEEL_BASE_SCRATCH_H
#define KEEL_BASE_SCRATCH_H
#include <stddef.h>

typedef struct keel_scratch {
    void *at[4];
    size_t n_bytes[4];
} keel_scratch;

/* At least n_bytes in buffer i; NULL with the error set. Contents are not kept. */
void *keel_scratch_reserve(keel_scratch *s, int i, size_t n_bytes);
void keel_scratch_free(keel_scratch *s);

#endif
