/* The arguments of dot_product_attention, and which keys a query sees. */
#ifndef KEEL_OPS_DOT_PRODUCT_ATTENTION_H
#define KEEL_OPS_DOT_PRODUCT_ATTENTION_H
#include "ops/args.h"

typedef struct keel_dot_product_attention_args {
    double scale; /* of the products of query and key */
    keel_masked_softmax_args seen;
    double less; /* what is taken from the scores of what is not seen; 0: it gets no weight */
    double rate; /* 0 .. 1, the fraction of the weights that is dropped in training */
} keel_dot_product_attention_args;

/* The keys [first, end) of `keys` that the arguments let query t see. Both grow with t. */
static inline void keel_seen_range(const keel_masked_softmax_args *a, int64_t t, int64_t keys,
                                   int64_t *first, int64_t *end)
{
    const int64_t low = a->window && t - a->window + 1 > 0 ? t - a->window + 1 : 0;
    int64_t high = a->causal && t + 1 < keys ? t + 1 : keys;
    if (a->window && !a->causal && t + a->window < high) high = t + a->window;
    *first = low < high ? low : high;
    *end = high;
}

/* Query [.., T, heads, D], key [.., S, shared, D], value [.., S, shared, V]. */
typedef struct keel_attention_dims {
    int64_t outer; /* the product of the dims before */
    int64_t t, s, heads, shared, d, v;
    int64_t lines;     /* of scores in a row: outer heads T */
    keel_shape scores; /* [.., heads, T, S] */
} keel_attention_dims;

static inline keel_attention_dims keel_attention_dims_of(const keel_shape *q, const keel_shape *k,
                                                         const keel_shape *v)
{
    const int r = q->rank;
    keel_attention_dims out = { 1,
                                q->dim[r - 3],
                                k->dim[r - 3],
                                q->dim[r - 2],
                                k->dim[r - 2],
                                q->dim[r - 1],
                                v->dim[r - 1],
                                0,
                                *q };
    for (int i = 0; i < r - 3; i++) out.outer *= q->dim[i];
    out.lines = out.outer * out.heads * out.t;
    out.scores.dim[r - 3] = out.heads;
    out.scores.dim[r - 2] = out.t;
    out.scores.dim[r - 1] = out.s;
    return out;
}

#endif
