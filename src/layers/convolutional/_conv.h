/* What convolutions of one to three dims share: their arguments, and the op they become. */
#ifndef KEEL_LAYERS_CONVOLUTIONAL_CONV_H
#define KEEL_LAYERS_CONVOLUTIONAL_CONV_H
#include "layers/_kernel.h"
#include "layers/core/low_rank.h"

typedef struct keel_conv {
    keel_kernel_args weights;
    int64_t filters;
    keel_ints kernel_size, strides;
    int padding, data_format;
    keel_ints dilation_rate;
    int64_t groups;
    keel_object activation;
    bool use_bias;
    keel_low_rank low_rank;
} keel_conv;

/* ones: a list of `dims` ones, as JSON; paddings: "valid|same", of one dim also "causal". */
#define KEEL_CONV_FIELDS(dims, ones, paddings)                                                     \
    KEEL_INT(keel_conv, filters, NULL, 1, 1e9, "how many output channels"),                        \
        KEEL_INTS(keel_conv, kernel_size, dims, NULL, 1, 65536, "size of the window"),             \
        KEEL_INTS(keel_conv, strides, dims, ones, 1, 65536, "steps of the window"),                \
        KEEL_CHOICE(keel_conv, padding, "\"valid\"", paddings,                                     \
                    "zeros around the places, or none"),                                           \
        KEEL_DATA_FORMAT(keel_conv),                                                               \
        KEEL_INTS(keel_conv, dilation_rate, dims, ones, 1, 65536,                                  \
                  "distance of the window's points"),                                              \
        KEEL_INT(keel_conv, groups, "1", 1, 1e9, "channels are cut into that many groups"),        \
        KEEL_OBJECT(keel_conv, activation, "\"linear\"", keel_activation_find,                     \
                    "applied to the outputs"),                                                     \
        KEEL_BOOL(keel_conv, use_bias, "true", "add a bias"), KEEL_KERNEL_FIELDS,                  \
        KEEL_LOW_RANK_FIELDS(keel_conv, low_rank)

/* The emit of such a layer: e->args is a keel_conv. */
keel_status keel_emit_conv(keel_emit *e, int dims);
/* keel_layer.low_rank and .to_config of such a layer. */
double keel_conv_low_rank(const void *args);
keel_status keel_conv_config(const void *args, json_t *config);

#endif
