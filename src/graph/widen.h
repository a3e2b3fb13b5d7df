/* Running a pass that knows no bfloat16 on values that are held in it: inputs and gradients are
 * widened to float32 in scratch, the pass runs there as it always does, and what it wrote is
 * rounded back. So every op trains under mixed_bfloat16, and kernels of its own are but faster. */
#ifndef KEEL_GRAPH_WIDEN_H
#define KEEL_GRAPH_WIDEN_H
#include "ops/op.h"

typedef struct keel_widened {
    keel_node node;           /* as the pass shall see it: everything in float32 */
    keel_spec *in_spec;       /* [n_in] what node.in points to */
    const keel_node *narrow;  /* as it is */
    keel_run run;             /* what runs on the copies */
    void *plan;               /* of it */
    int64_t scratch;          /* of it; the copies lie behind */
    bool in, out;             /* are read: inputs, output */
    bool out_grad, makes_out; /* is read; is written */
    bool makes_grad;
    const void **in_at;       /* [n_in] */
    void **grad_at;           /* [n_in] */
    void **out_at;            /* [n_out] */
    const void **out_grad_at; /* [n_out] */
} keel_widened;

/* Whether the engine must widen for a pass without a kernel for bfloat16. */
static inline bool keel_node_is_narrow(const keel_node *n)
{
    return n->held == KEEL_BFLOAT16 && !n->op->casts;
}

/* For one pass of a narrow node; run, plan and scratch are for the caller to fill. One worker's. */
keel_status keel_widened_create(keel_widened **out, const keel_node *n, keel_pass pass);
void keel_widened_destroy(keel_widened *w);

/* Bytes of scratch a call of `rows` rows wants, those of the pass within. */
int64_t keel_widened_bytes(const keel_widened *w, int64_t rows);

/* The pass as the program calls it: c->plan is the keel_widened. */
void keel_widened_run(const keel_call *c);

#endif
