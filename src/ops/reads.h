/* Which values a pass of a node reads, besides gradients: KEEL_READS_IN and so on (ops/op.h). */
#ifndef KEEL_OPS_READS_H
#define KEEL_OPS_READS_H
#include "ops/op.h"

/* Whether the node's weight gradients are read from the merged record of backward. */
static inline bool keel_weights_from_merged(const keel_node *n)
{
    return n->op->weights_from_merged && n->partial_backward > 0;
}

static inline unsigned keel_pass_reads(const keel_node *n, keel_pass pass)
{
    if (pass == KEEL_FORWARD || pass == KEEL_PARTIAL) return KEEL_READS_IN;
    if (pass != KEEL_WEIGHTS) return n->op->backward_reads;
    return keel_weights_from_merged(n) ? 0 : n->op->weights_reads;
}

static inline bool keel_reads_in(unsigned reads, int k)
{
    return reads & KEEL_READS_IN || (k == 0 && reads & KEEL_READS_FIRST);
}

static inline bool keel_reads_out(unsigned reads, int k)
{
    return reads & KEEL_READS_OUT || (k == 0 && reads & KEEL_READS_FIRST_OUT);
}

#endif
