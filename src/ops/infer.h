/* What most ops' infer has to check, with messages that name the numbers. */
#ifndef KEEL_OPS_INFER_H
#define KEEL_OPS_INFER_H
#include "ops/op.h"

/* The node has n_in inputs (-1: one or more) and between min_weight and max_weight weights, all of
 * the node's real type, no dim below 1, sizes that cannot overflow. KEEL_ESHAPE or KEEL_EARG. */
keel_status keel_infer_check(const keel_node *n, int n_in, int min_weight, int max_weight);

/* Weight i has this shape; `name` and `why` go into the message: "kernel", "for 3 channels". */
keel_status keel_infer_weight(const keel_node *n, int i, const char *name, const keel_shape *want);

/* Input 0 is an image, [H, W, C]. */
keel_status keel_infer_image(const keel_node *n);

/* The axis as an index into the dims of input 0. */
keel_status keel_infer_axis(const keel_node *n, int64_t axis, int *index);

/* One input, no weights, the output as the input: all of infer for a pointwise op. */
keel_status keel_infer_like(keel_node *n);

/* Set the output: `shape` of the node's real type; refused when its size overflows. */
keel_status keel_infer_out(keel_node *n, const keel_shape *shape);

/* A shape around one axis: [outer, n, inner]. */
typedef struct keel_axis_split {
    int64_t outer, n, inner;
} keel_axis_split;
keel_axis_split keel_split_at(const keel_shape *s, int index);

#endif
