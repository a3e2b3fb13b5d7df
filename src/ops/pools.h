/* What the poolings of images and their gradients as ops have in common. */
#ifndef KEEL_OPS_POOLS_H
#define KEEL_OPS_POOLS_H
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/window.h"

typedef struct keel_unpool2d_args { /* average_unpool2d; the numbers are those of the pooling */
    keel_pool2d_args pooling;
    int64_t to[2]; /* places of its image */
} keel_unpool2d_args;

/* How many pixels of the image the window at output o has in dim d, where
 * windows have no dilation. */
static inline int64_t keel_window_covers(const keel_window *v, int d, int64_t o)
{
    const int64_t first = o * v->stride[d] - v->pad[d], end = first + v->size[d];
    return (end < v->in[d] ? end : v->in[d]) - (first > 0 ? first : 0);
}

static inline void keel_pool2d_for_case(keel_pool2d_args *a, const char *text)
{
    *a = (keel_pool2d_args){ .pool = { 2, 2 }, .strides = { 2, 2 } };
    keel_case_ints(text, "pool", a->pool, 2);
    keel_case_ints(text, "strides", a->strides, 2);
    keel_case_ints(text, "pad", a->pad, 4);
    a->relu = keel_case_has(text, "relu");
}

#endif
