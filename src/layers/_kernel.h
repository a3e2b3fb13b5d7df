/* A kernel and a bias: the arguments that layers with both have, and the weights. */
#ifndef KEEL_LAYERS_KERNEL_H
#define KEEL_LAYERS_KERNEL_H
#include "layers/layer.h"

typedef struct keel_kernel_args { /* first in the arguments of the layer */
    keel_object kernel_initializer, bias_initializer;
    keel_object kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint;
} keel_kernel_args;

#define KEEL_KERNEL_FIELDS                                                                         \
    KEEL_OBJECT(keel_kernel_args, kernel_initializer, "\"glorot_uniform\"", keel_initializer_find, \
                "first values of the kernel"),                                                     \
        KEEL_OBJECT(keel_kernel_args, bias_initializer, "\"zeros\"", keel_initializer_find,        \
                    "first values of the bias"),                                                   \
        KEEL_OBJECT(keel_kernel_args, kernel_regularizer, "null", keel_regularizer_find,           \
                    "of the kernel"),                                                              \
        KEEL_OBJECT(keel_kernel_args, bias_regularizer, "null", keel_regularizer_find,             \
                    "of the bias"),                                                                \
        KEEL_OBJECT(keel_kernel_args, kernel_constraint, "null", keel_constraint_find,             \
                    "of the kernel"),                                                              \
        KEEL_OBJECT(keel_kernel_args, bias_constraint, "null", keel_constraint_find,               \
                    "of the bias")

keel_weight_decl keel_kernel_decl(const keel_kernel_args *a, const keel_shape *shape, int lead);
/* Adds the kernel, and the bias if the layer uses one. lead: keel_weight_decl. */
keel_status keel_emit_kernel(keel_emit *e, const keel_kernel_args *a, const keel_shape *shape,
                             int lead, keel_weights *w);
keel_status keel_emit_bias(keel_emit *e, const keel_kernel_args *a, bool use,
                           const keel_shape *shape, keel_weights *w);

#endif
