/* What a call of an op's reference reads and writes, for devices whose memory is not the host's. */
#ifndef KEEL_OPS_RANGES_H
#define KEEL_OPS_RANGES_H
#include "ops/op.h"

typedef struct keel_range {
    void **at; /* the pointer in the call */
    int64_t bytes;
    bool reads, writes;
} keel_range;

/* The most ranges of a call of this node. */
int keel_ranges_most(const keel_node *n);

/* Fills out with the pointers of the call that are not NULL, but for scratch; returns how many. A
 * call may read what it does not need. */
int keel_ranges_of(keel_call *c, keel_pass pass, keel_range *out);

#endif
