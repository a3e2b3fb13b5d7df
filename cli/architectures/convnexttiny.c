/* ConvNeXt-Tiny as keras.applications.ConvNeXtTiny builds it: Liu et al. 2022, arXiv 2201.03545.
 * Each block filters 7x7 by depth, normalizes each pixel, and widens and narrows its channels.
 * Layers have Keras's names, except that the Rescaling is the one of `keel new`, whose
 * pixels of 0..1 the Normalization takes, and that the pairs that Keras holds in a Sequential are
 * layers of the model itself. */
#include "architecture.h"
#include <stdio.h>

enum { STAGES = 4 };
static const double EPSILON = 1e-6;
#define NAME "convnext_tiny"

/* Means and variances of ImageNet, of pixels of 0..1. */
static keel_symbol normalize(keel_net *n, keel_symbol x)
{
    if (n->input.dim[2] != 3) return x;
    return keel_net_call(n, "Normalization",
                         KEEL_ARGS(KEEL_ARG_STR("name", NAME "_prestem_normalization"),
                                   KEEL_ARG_JSON("mean", "[0.485, 0.456, 0.406]"),
                                   KEEL_ARG_JSON("variance", "[0.052441, 0.050176, 0.050625]")),
                         x);
}

static keel_symbol block(keel_net *n, keel_symbol x, const char *name, int64_t channels)
{
    char add[64], scale[64];
    snprintf(scale, sizeof scale, "%.40s_layer_scale", name);
    snprintf(add, sizeof add, "%.40s_add", name);
    keel_symbol y = keel_net_conv(
        n, x, name, "_depthwise_conv",
        &(keel_conv){
            .filters = channels, .kernel = 7, .same = true, .bias = true, .groups = channels });
    y = keel_net_layer_norm(n, y, name, "_layernorm", EPSILON);
    y = keel_net_dense(n, y, name, "_pointwise_conv_1", 4 * channels, NULL);
    y = keel_net_activation(n, y, name, "_gelu", "gelu");
    y = keel_net_dense(n, y, name, "_pointwise_conv_2", channels, NULL);
    y = keel_net_call(n, "LayerScale",
                      KEEL_ARGS(KEEL_ARG_STR("name", scale), KEEL_ARG_FLOAT("init_values", 1e-6),
                                KEEL_ARG_INT("projection_dim", channels)),
                      y);
    y = keel_net_activation(n, y, name, "_identity", "linear");
    return keel_net_add(n, add, x, y);
}

/* A convolution whose windows do not overlap makes the image smaller. */
static keel_symbol shrink(keel_net *n, keel_symbol x, const char *name, int64_t channels,
                          int64_t by)
{
    return keel_net_conv(
        n, x, name, "",
        &(keel_conv){ .filters = channels, .kernel = by, .stride = by, .bias = true });
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    static const int64_t blocks[STAGES] = { 3, 3, 9, 3 }, channels[STAGES] = { 96, 192, 384, 768 };
    char name[64];
    x = normalize(n, x);
    for (int stage = 0; stage < STAGES; stage++) {
        if (stage == 0) {
            x = shrink(n, x, NAME "_stem_conv", channels[0], 4);
            x = keel_net_layer_norm(n, x, NAME, "_stem_layernorm", EPSILON);
        } else {
            snprintf(name, sizeof name, NAME "_downsampling_layernorm_%d", stage - 1);
            x = keel_net_layer_norm(n, x, name, "", EPSILON);
            snprintf(name, sizeof name, NAME "_downsampling_conv_%d", stage - 1);
            x = shrink(n, x, name, channels[stage], 2);
        }
        for (int i = 0; i < blocks[stage]; i++) {
            snprintf(name, sizeof name, NAME "_stage_%d_block_%d", stage, i);
            x = block(n, x, name, channels[stage]);
        }
    }
    x = keel_net_call(n, "GlobalAveragePooling2D",
                      KEEL_ARGS(KEEL_ARG_STR("name", NAME "_head_gap")), x);
    return keel_net_layer_norm(n, x, NAME, "_head_layernorm", EPSILON);
}

const keel_architecture keel_architecture_convnexttiny = {
    .name = "convnexttiny",
    .summary = "ConvNeXt-Tiny of keras.applications: 29 million parameters",
    .rank = 3,
    .scale = 1.0 / 255,
    .head = NAME "_head_dense",
    .build = build,
};
