/* Gradients as ops, for gradients that are differentiated themselves (a gradient penalty). Only
 * there: everywhere else an op's `backward` runs. An op that can be differentiated twice has a
 * function that emits the gradient of one of its inputs as other ops; their own backward is then
 * the second derivative. See graph/derive.c, which calls them. */
#ifndef KEEL_OPS_DERIVE_H
#define KEEL_OPS_DERIVE_H
#include "ops/all.h"
#include "ops/args.h"
#include "ops/op.h"

/* What a node's gradient is made of. Values are numbers in the graph, as in graph.h. */
struct keel_derivation {
    const keel_node *node;
    const int *in, *out; /* [n_in], [n_out] of the node */
    int grad;            /* of its output 0 */
    /* Adds an op: on in [n_in], and with weight number `weight` of the node in the shape `as`, if
     * that is not NULL. */
    keel_status (*emit)(const keel_derivation *d, const keel_op *op, const void *args,
                        const int *in, int n_in, int weight, const keel_shape *as, int *out);
    void *graph;
};

/* Short forms: an op on one value, on two values, on a value and a number (of ops/binary.h). */
static inline keel_status keel_derive_one(const keel_derivation *d, const keel_op *op,
                                          const void *args, int x, int *out)
{
    return d->emit(d, op, args, &x, 1, 0, NULL, out);
}

static inline keel_status keel_derive_two(const keel_derivation *d, const keel_op *op, int a, int b,
                                          int *out)
{
    return d->emit(d, op, NULL, (const int[]){ a, b }, 2, 0, NULL, out);
}

static inline keel_status keel_derive_with(const keel_derivation *d, const keel_op *op, int x,
                                           double number, int *out)
{
    const keel_binary_args args = { .constant = number };
    return keel_derive_one(d, op, &args, x, out);
}

/* grad times a value. */
static inline keel_status keel_derive_times(const keel_derivation *d, int x, int *out)
{
    return keel_derive_two(d, &keel_op_multiply, d->grad, x, out);
}

static inline keel_status keel_derive_reshape(const keel_derivation *d, int x, const keel_shape *to,
                                              int *out)
{
    const keel_reshape_args args = { .shape = *to };
    return keel_derive_one(d, &keel_op_reshape, &args, x, out);
}

/* An op on a value and one of the node's weights, as it is. */
static inline keel_status keel_derive_weighted(const keel_derivation *d, const keel_op *op,
                                               const void *args, int x, int weight, int *out)
{
    return d->emit(d, op, args, &x, 1, weight, &d->node->weight[weight].shape, out);
}

/* A number minus, or over, a value. */
static inline keel_status keel_derive_from(const keel_derivation *d, const keel_op *op,
                                           double number, int x, int *out)
{
    const keel_binary_args args = { .left = true, .constant = number };
    return keel_derive_one(d, op, &args, x, out);
}

/* 1 where a value compares so with a number, else 0. */
static inline keel_status keel_derive_compare(const keel_derivation *d, int x, keel_comparison is,
                                              double number, int *out)
{
    const keel_compare_args args = { { .constant = number }, is };
    return keel_derive_one(d, &keel_op_compare, &args, x, out);
}

/* The mean or sum of a value of the input's shape over dims first .. end - 1, which become 1. */
static inline keel_status keel_derive_reduce(const keel_derivation *d, keel_reduce_to to, int first,
                                             int end, int x, int *out)
{
    keel_reduce_args args = { .to = to, .keepdims = true };
    for (int i = first; i < end; i++) args.over[i] = true;
    return keel_derive_one(d, &keel_op_reduce, &args, x, out);
}

/* `above` where input 0 is above 0, else `below`; as many numbers as input 0 has. */
static inline keel_status keel_derive_choice(const keel_derivation *d, double above, double below,
                                             int *out)
{
    const keel_compare_args is = { .is = KEEL_GREATER };
    const keel_where_args args = { .fixed = { true, true }, .constant = { above, below } };
    int condition;
    KEEL_TRY(keel_derive_one(d, &keel_op_compare, &is, d->in[0], &condition));
    return keel_derive_one(d, &keel_op_where, &args, condition, out);
}

#endif
