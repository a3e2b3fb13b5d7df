/* Runs a pass of float32 on values that are stored in bfloat16 or float16. Inputs and gradients are
 * widened to float32 in scratch, the pass runs there as usual, and its results are rounded back. So
 * every op trains under mixed_bfloat16 and mixed_float16, and a special kernel only makes it
 * faster.
 */
#ifndef KEEL_GRAPH_WIDEN_H
#define KEEL_GRAPH_WIDEN_H
#include "ops/op.h"

typedef struct keel_widened {
    keel_node node;           /* the node as the pass sees it: everything in float32 */
    keel_spec *in_spec;       /* [n_in] what node.in points to */
    const keel_node *narrow;  /* as it is */
    keel_run run;             /* runs on the copies */
    void *plan;               /* of it */
    int64_t scratch;          /* of it; the copies lie behind */
    int n_in, n_out;          /* how many inputs and outputs the pass reads, from the first on */
    bool out_grad, makes_out; /* whether it reads the outputs' gradients, and writes the outputs */
    bool makes_grad;
    const void **in_at;       /* [n_in] */
    void **grad_at;           /* [n_in] */
    void **out_at;            /* [n_out] */
    const void **out_grad_at; /* [n_out] */
} keel_widened;

/* Whether the engine must widen for a pass that has no kernel for the type. */
static inline bool keel_node_is_narrow(const keel_node *n)
{
    return keel_dtype_is_narrow(n->held) && !n->op->casts;
}

/* For one pass of a narrow node, for one worker. The caller fills run, plan and scratch. */
keel_status keel_widened_create(keel_widened **out, const keel_node *n, keel_pass pass);
void keel_widened_destroy(keel_widened *w);

/* Bytes of scratch that a call of `rows` rows needs, including those of the pass. */
int64_t keel_widened_bytes(const keel_widened *w, int64_t rows);

/* The pass as the program calls it: c->plan is the keel_widened. */
void keel_widened_run(const keel_call *c);

#endif
