/* Checks that the infer of most ops needs, with messages that name the numbers. */
#ifndef KEEL_OPS_INFER_H
#define KEEL_OPS_INFER_H
#include "ops/op.h"

/* Checks that the node has n_in inputs (-1: one or more) and between min_weight and max_weight
 * weights, all of its real type, with no dim below 1 and sizes that cannot overflow. KEEL_ESHAPE or
 * KEEL_EARG. */
keel_status keel_infer_check(const keel_node *n, int n_in, int min_weight, int max_weight);

/* Checks that weight i has the shape `want`; `name`, such as "kernel", is for the message. */
keel_status keel_infer_weight(const keel_node *n, int i, const char *name, const keel_shape *want);

/* Checks that input 0 is an image, [H, W, C]. */
keel_status keel_infer_image(const keel_node *n);

/* Checks that input 0 is a volume, [D, H, W, C]. */
keel_status keel_infer_volume(const keel_node *n);

/* The axis as an index into the dims of input 0. */
keel_status keel_infer_axis(const keel_node *n, int64_t axis, int *index);

/* The whole infer of a pointwise op: one input, no weights, and an output like the input. */
keel_status keel_infer_like(keel_node *n);

/* Sets the output: `shape`, in the type in which the node stores its output. Refuses a size that
 * overflows. */
keel_status keel_infer_out(keel_node *n, const keel_shape *shape);

/* NumPy's broadcasting within rows: dims are equal or 1. Widens *to by `other`; false: they do not
 * fit. */
static inline bool keel_spread_over(keel_shape *to, const keel_shape *other)
{
    keel_shape out = *to;
    if (out.rank != other->rank) return false;
    for (int d = 0; d < out.rank; d++) {
        if (out.dim[d] == 1) out.dim[d] = other->dim[d];
        if (other->dim[d] != 1 && other->dim[d] != out.dim[d]) return false;
    }
    *to = out;
    return true;
}

/* The element of `in`, broadcast to `out`, that belongs to element i of out. */
static inline int64_t keel_spread_index(const keel_shape *out, const keel_shape *in, int64_t i)
{
    int64_t index = 0, step = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        if (in->dim[d] != 1) {
            index += i % out->dim[d] * step;
            step *= in->dim[d];
        }
        i /= out->dim[d];
    }
    return index;
}

/* A shape around one axis: [outer, n, inner]. */
typedef struct keel_axis_split {
    int64_t outer, n, inner;
} keel_axis_split;
keel_axis_split keel_split_at(const keel_shape *s, int index);

#endif
