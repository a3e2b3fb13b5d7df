/* Layers that a program registers (keel_register_layer): what is asked of their callbacks before
 * any row is run, and the op that runs them. */
#ifndef KEEL_LAYERS_CUSTOM_H
#define KEEL_LAYERS_CUSTOM_H
#include "base/registered.h"
#include "layers/layer.h"

/* The answers of a layer for the shapes of its inputs, checked. */
typedef struct keel_custom_built {
    int n_weight;
    keel_layer_weight weight[KEEL_CUSTOM_WEIGHTS_MAX];
    keel_shape out;
    int64_t saved; /* numbers of a row */
} keel_custom_built;

/* args: of the layer; in: [n_in] of a row. KEEL_ESHAPE, KEEL_EARG: the inputs do not fit, or an
 * answer is no shape. */
keel_status keel_custom_build(const void *args, const keel_shape *in, int n_in,
                              keel_custom_built *out);
/* The initializer of a weight, which the caller frees. */
keel_status keel_custom_initializer(const keel_layer_weight *w, keel_object *out);

/* Calls the layer's function on the rows of *r, whose config and user are set. KEEL_ECALLBACK: it
 * failed. */
keel_status keel_custom_call(const void *args, keel_layer_rows *r, bool backward);

/* custom_op.c. The args of a node; those of the layer live as long as the model. */
typedef struct keel_custom_args {
    const void *of;
    keel_shape out;
    int64_t saved;
} keel_custom_args;
extern const keel_op keel_custom_op;

#endif
