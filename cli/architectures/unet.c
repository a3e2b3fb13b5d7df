/* U-Net in the form of Keras's example oxford_pets_image_segmentation: separable convolutions on
 * the way down, transposed ones on the way up, a shortcut beside each block. It gives classes for
 * each pixel. Ronneberger, Fischer, Brox 2015, arXiv 1505.04597. */
#include "architecture.h"
#include <stdio.h>

static const double MOMENTUM = 0.99, EPSILON = 1e-3;

static keel_symbol convolve(keel_net *n, const char *layer, const char *block, int i,
                            int64_t filters, keel_symbol x)
{
    char name[48], prefix[32];
    snprintf(prefix, sizeof prefix, "%s_%d", block, i);
    snprintf(name, sizeof name, "%s_conv", prefix);
    x = keel_net_relu(n, x, prefix, "_relu");
    x = keel_net_call(n, layer,
                      KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("filters", filters),
                                KEEL_ARG_INTS("kernel_size", 3, 3),
                                KEEL_ARG_STR("padding", "same")),
                      x);
    return keel_net_norm(n, x, prefix, "_bn", MOMENTUM, EPSILON);
}

static keel_symbol twice(keel_net *n, keel_symbol x)
{
    return keel_net_call(n, "UpSampling2D", KEEL_ARGS(KEEL_ARG_INTS("size", 2, 2)), x);
}

static keel_symbol block(keel_net *n, const char *name, bool down, int64_t filters, keel_symbol x)
{
    char add[48];
    const char *layer = down ? "SeparableConv2D" : "Conv2DTranspose";
    const keel_conv shortcut = { filters, 1, down ? 2 : 1, .same = true, .bias = true };
    keel_symbol beside = down ? x : twice(n, x);
    x = convolve(n, layer, name, 1, filters, x);
    x = convolve(n, layer, name, 2, filters, x);
    if (down)
        x = keel_net_call(n, "MaxPooling2D",
                          KEEL_ARGS(KEEL_ARG_INTS("pool_size", 3, 3),
                                    KEEL_ARG_INTS("strides", 2, 2),
                                    KEEL_ARG_STR("padding", "same")),
                          x);
    else
        x = twice(n, x);
    beside = keel_net_conv(n, beside, name, "_0_conv", &shortcut);
    snprintf(add, sizeof add, "%s_add", name);
    return keel_net_add(n, add, x, beside);
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    static const int64_t down[] = { 64, 128, 256 }, up[] = { 256, 128, 64, 32 };
    char name[32];
    const keel_conv first = { 32, 3, 2, .same = true, .bias = true };
    const keel_conv last = { n->classes, 3, .same = true, .bias = true,
                             .activation = n->classes > 1 ? "softmax" : "sigmoid" };
    x = keel_net_conv(n, x, "first", "_conv", &first);
    x = keel_net_norm(n, x, "first", "_bn", MOMENTUM, EPSILON);
    x = keel_net_relu(n, x, "first", "_relu");
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "down%d", i + 1);
        x = block(n, name, true, down[i], x);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "up%d", i + 1);
        x = block(n, name, false, up[i], x);
    }
    return keel_net_conv(n, x, "predictions", "", &last);
}

const keel_architecture keel_architecture_unet = {
    .name = "unet",
    .summary = "U-Net of Keras's segmentation example: classes for each pixel",
    .takes = "images whose sides are multiples of 16, as 128,128,3",
    .rank = 3,
    .scale = 1.0 / 255,
    .build = build,
};
