/* What the two ops of layer normalisation share, of one input and of a sum: see ops/layer_norm.c
 * and, for the loops of their references, ops/layer_norm_real.h. */
#ifndef KEEL_OPS_LAYER_NORM_H
#define KEEL_OPS_LAYER_NORM_H
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>

/* Elements of a place. */
static inline int64_t keel_layer_norm_length(const keel_node *n)
{
    const keel_shape *in = &n->in[0].shape;
    int64_t count = 1;
    for (int64_t k = ((const keel_layer_norm_args *)n->args)->dims; k > 0; k--)
        count *= in->dim[in->rank - k];
    return count;
}

/* Checks arguments and weights, and declares the saved statistics: mean and r of each place. */
static inline keel_status keel_layer_norm_check(keel_node *n, int n_in)
{
    const keel_layer_norm_args *a = n->args;
    const char *const op = n->op->name;
    KEEL_TRY(keel_infer_check(n, n_in, a->scale + a->center, a->scale + a->center));
    const keel_shape *in = &n->in[0].shape;
    if (a->dims < 1 || a->dims > in->rank)
        return keel_fail(KEEL_ESHAPE, "%s: the last %lld dims of %d", op, (long long)a->dims,
                         in->rank);
    if (!(a->epsilon >= 0))
        return keel_fail(KEEL_EARG, "%s: epsilon %g must not be negative", op, a->epsilon);
    keel_shape over = { .rank = (int)a->dims };
    for (int d = 0; d < over.rank; d++) over.dim[d] = in->dim[in->rank - over.rank + d];
    if (a->scale) KEEL_TRY(keel_infer_weight(n, 0, "gamma", &over));
    if (a->center) KEEL_TRY(keel_infer_weight(n, a->scale, "beta", &over));
    const keel_spec stats = { n->real,
                              KEEL_SHAPE(keel_row_count(&n->in[0]) / keel_shape_count(&over), 2) };
    return n->backward ? keel_node_add_saved(n, &stats) : KEEL_OK;
}

static inline void keel_layer_norm_for_case(void *args, const char *text)
{
    keel_layer_norm_args *a = args;
    double over = 1;
    *a = (keel_layer_norm_args){ .epsilon = 1e-3 };
    a->center = !keel_case_has(text, "no_center");
    a->scale = !keel_case_has(text, "no_scale");
    a->rms = keel_case_has(text, "rms");
    keel_case_number(text, "epsilon", &a->epsilon);
    keel_case_number(text, "dims", &over);
    a->dims = (int64_t)over;
}

#endif
