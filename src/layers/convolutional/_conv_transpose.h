/* What transposed convolutions of one to three dims share: their arguments, and the op they become.
 */
#ifndef KEEL_LAYERS_CONVOLUTIONAL_CONV_TRANSPOSE_H
#define KEEL_LAYERS_CONVOLUTIONAL_CONV_TRANSPOSE_H
#include "layers/_kernel.h"

typedef struct keel_conv_transposed {
    keel_kernel_args weights;
    int64_t filters;
    keel_ints kernel_size, strides;
    int padding;
    keel_ints output_padding;
    int data_format;
    keel_ints dilation_rate;
    keel_object activation;
    bool use_bias;
} keel_conv_transposed;

/* ones: a list of `dims` ones, as JSON. */
#define KEEL_CONV_TRANSPOSED_FIELDS(dims, ones)                                                    \
    KEEL_INT(keel_conv_transposed, filters, NULL, 1, 1e9, "how many output channels"),             \
        KEEL_INTS(keel_conv_transposed, kernel_size, dims, NULL, 1, 65536, "size of the window"),  \
        KEEL_INTS(keel_conv_transposed, strides, dims, ones, 1, 65536,                             \
                  "outputs from one input to the next"),                                           \
        KEEL_CHOICE(keel_conv_transposed, padding, "\"valid\"", "valid|same",                      \
                    "same: strides times as many outputs as inputs"),                              \
        KEEL_INTS(keel_conv_transposed, output_padding, dims, "null", 0, 65536,                    \
                  "more outputs at the end, less than the strides; null: what padding asks for"),  \
        KEEL_DATA_FORMAT(keel_conv_transposed),                                                    \
        KEEL_INTS(keel_conv_transposed, dilation_rate, dims, ones, 1, 65536,                       \
                  "distance of the window's points"),                                              \
        KEEL_OBJECT(keel_conv_transposed, activation, "\"linear\"", keel_activation_find,          \
                    "applied to the outputs"),                                                     \
        KEEL_BOOL(keel_conv_transposed, use_bias, "true", "add a bias"), KEEL_KERNEL_FIELDS

/* The emit of such a layer: e->args is a keel_conv_transposed. */
keel_status keel_emit_conv_transpose(keel_emit *e, int dims);

#endif
