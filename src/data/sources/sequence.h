/* Batches of a sequence that several threads get at once, given out in order. */
#ifndef KEEL_DATA_SOURCES_SEQUENCE_H
#define KEEL_DATA_SOURCES_SEQUENCE_H
#include "data/source.h"

enum { KEEL_WORKERS_MAX = 64 };

typedef struct keel_batches keel_batches;

/* Get batch i into `field`. Called by several threads. */
typedef keel_status keel_get_batch(const void *state, int64_t i, void *const *field, int64_t *rows);
/* The number of the k-th batch of the pass. */
typedef int64_t keel_batch_number(const void *state, int64_t k);

/* At most `workers` threads get batches, of which the one that asks is one: it gets others while it
 * waits for its own. KEEL_ENOMEM; KEEL_EARG: a batch is larger than the address space. */
keel_status keel_batches_create(keel_batches **out, const keel_data_spec *spec, int workers,
                                keel_get_batch *get, keel_batch_number *number, const void *state);
/* The bytes of all that it will keep; INT64_MAX: more than can be counted. */
int64_t keel_batches_bytes(const keel_data_spec *spec, int workers);
/* Copy the next batch of a pass of n. KEEL_END: there is none. The failure of a batch comes in its
 * turn; the next call gets it again. */
keel_status keel_batches_next(keel_batches *b, int64_t n, void *const *field, int64_t *rows);
/* Wait until no thread gets one, and go to the first of a pass. */
void keel_batches_rewind(keel_batches *b);
void keel_batches_destroy(keel_batches *b); /* NULL is allowed */

#endif
