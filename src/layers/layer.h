/* A layer is its arguments, its weights, and the ops it emits. One file each, in Keras's folders.
 */
#ifndef KEEL_LAYERS_LAYER_H
#define KEEL_LAYERS_LAYER_H
#include "activations/activation.h"
#include "base/field.h"
#include "graph/graph.h"
#include "initializers/initializer.h"
#include "regularizers/regularizer.h"

typedef struct keel_weight_decl {
    const char *name; /* Keras's: "kernel", "bias", "gamma", "moving_mean" */
    keel_shape shape;
    const keel_object *initializer; /* of the layer's args */
    const keel_object *regularizer; /* NULL or type NULL: none */
    bool state;                     /* not trainable by nature: moving mean */
} keel_weight_decl;

/* What a layer emits into: a graph, and a store that makes its weights the first time. */
typedef struct keel_emit {
    keel_graph *graph;
    const void *args; /* of this layer instance */
    const char *name; /* of this layer instance */
    bool training;    /* of the graph, but false in a frozen BatchNormalization */
    int n_in;
    const keel_value *in;
    keel_value out; /* the layer sets it */
    /* The k-th call of one emit is the layer's k-th weight, in Keras's order of layer.weights. */
    keel_status (*weight)(struct keel_emit *e, const keel_weight_decl *d, keel_variable *out,
                          keel_spec *spec);
    void *context;
} keel_emit;

typedef struct keel_layer {
    keel_type type;
    int min_inputs, max_inputs; /* 0, 0: InputLayer; max -1: any number */
    keel_status (*emit)(keel_emit *e);
} keel_layer;

/* Shorthands for emit: the spec of input i, and adding one op. */
const keel_spec *keel_emit_in(const keel_emit *e, int i);
keel_status keel_emit_op(keel_emit *e, const char *op, const void *args, const keel_value *in,
                         int n_in, const keel_variable *w, const keel_spec *spec, int n_w,
                         keel_value *out);
/* Emit an activation given as an argument; none or "linear" emits nothing. */
keel_status keel_emit_activation(keel_emit *e, const keel_object *activation, keel_value in,
                                 keel_value *out);

extern const keel_layer *const keel_layers[]; /* generated; ends with NULL */
const keel_layer *keel_layer_find(const char *class_name);

#endif
