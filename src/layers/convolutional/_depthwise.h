/* What convolutions of single channels share, in one and two dims: their arguments, and the ops
 * they become. A separable one continues with a window of 1 over all channels. */
#ifndef KEEL_LAYERS_CONVOLUTIONAL_DEPTHWISE_H
#define KEEL_LAYERS_CONVOLUTIONAL_DEPTHWISE_H
#include "layers/layer.h"

typedef struct keel_depthwise {
    keel_ints kernel_size, strides;
    int padding, data_format;
    int64_t depth_multiplier;
    keel_ints dilation_rate;
    keel_object activation;
    bool use_bias;
    keel_object depthwise_initializer, bias_initializer;
    keel_object depthwise_regularizer, bias_regularizer, depthwise_constraint, bias_constraint;
    int64_t filters; /* the rest is for separable ones */
    keel_object pointwise_initializer, pointwise_regularizer, pointwise_constraint;
} keel_depthwise;

/* ones: a list of `dims` ones, as JSON. */
#define KEEL_DEPTHWISE_FIELDS(dims, ones)                                                          \
    KEEL_INTS(keel_depthwise, kernel_size, dims, NULL, 1, 65536, "size of the window"),            \
        KEEL_INTS(keel_depthwise, strides, dims, ones, 1, 65536, "steps of the window"),           \
        KEEL_CHOICE(keel_depthwise, padding, "\"valid\"", "valid|same",                            \
                    "zeros around the places, or none"),                                           \
        KEEL_INT(keel_depthwise, depth_multiplier, "1", 1, 1e6, "outputs of each channel"),        \
        KEEL_DATA_FORMAT(keel_depthwise),                                                          \
        KEEL_INTS(keel_depthwise, dilation_rate, dims, ones, 1, 65536,                             \
                  "distance of the window's points"),                                              \
        KEEL_OBJECT(keel_depthwise, activation, "\"linear\"", keel_activation_find,                \
                    "applied to the outputs"),                                                     \
        KEEL_BOOL(keel_depthwise, use_bias, "true", "add a bias"),                                 \
        KEEL_OBJECT(keel_depthwise, depthwise_initializer, "\"glorot_uniform\"",                   \
                    keel_initializer_find, "first values of the kernel of each channel"),          \
        KEEL_OBJECT(keel_depthwise, bias_initializer, "\"zeros\"", keel_initializer_find,          \
                    "first values of the bias"),                                                   \
        KEEL_OBJECT(keel_depthwise, depthwise_regularizer, "null", keel_regularizer_find,          \
                    "of the kernel of each channel"),                                              \
        KEEL_OBJECT(keel_depthwise, bias_regularizer, "null", keel_regularizer_find,               \
                    "of the bias"),                                                                \
        KEEL_OBJECT(keel_depthwise, depthwise_constraint, "null", keel_constraint_find,            \
                    "of the kernel"),                                                              \
        KEEL_OBJECT(keel_depthwise, bias_constraint, "null", keel_constraint_find, "of the bias")

#define KEEL_SEPARABLE_FIELDS(dims, ones)                                                          \
    KEEL_INT(keel_depthwise, filters, NULL, 1, 1e9, "how many output channels"),                   \
        KEEL_DEPTHWISE_FIELDS(dims, ones),                                                         \
        KEEL_OBJECT(keel_depthwise, pointwise_initializer, "\"glorot_uniform\"",                   \
                    keel_initializer_find, "first values of the kernel over all channels"),        \
        KEEL_OBJECT(keel_depthwise, pointwise_regularizer, "null", keel_regularizer_find,          \
                    "of the kernel over all channels"),                                            \
        KEEL_OBJECT(keel_depthwise, pointwise_constraint, "null", keel_constraint_find,            \
                    "of the kernel over all channels")

/* The emits of such layers: e->args is a keel_depthwise. */
keel_status keel_emit_depthwise(keel_emit *e, int dims);
keel_status keel_emit_separable(keel_emit *e, int dims);

#endif
