/* Buffers that a reader of rows keeps from row to row, so that it allocates only while they grow.
 */
#ifndef KEEL_BASE_SCRATCH_H
#define KEEL_BASE_SCRATCH_H
#include "base/account.h"
#include <stddef.h>

typedef struct keel_scratch {
    void *at[4];
    size_t n_bytes[4];
    struct keel_scratch *inner; /* for what is called while these buffers are in use */
    struct keel_trail *trail;   /* of the thread: see data/trail.h; NULL: nobody asks */
    struct keel_probe *probe;   /* of its thread, which notes what time goes to; may be NULL */
    keel_account *account;      /* that the buffers are taken from; NULL: none */
} keel_scratch;

/* Buffer i with at least n_bytes, whose contents are undefined. NULL: out of memory, or no room in
 * the account, with the error set. */
void *keel_scratch_reserve(keel_scratch *s, int i, size_t n_bytes);
keel_scratch *keel_scratch_inner(keel_scratch *s); /* NULL: out of memory */
void keel_scratch_free(keel_scratch *s);           /* it may be used again */

#endif
