/* ResNet-18: He, Zhang, Ren, Sun 2015, arXiv 1512.03385, table 1: basic blocks of two 3x3
 * convolutions, stride in the first, projection where the shape changes; convolutions without bias.
 * Keras does not have it; names follow those of its resnet50. */
#include "architecture.h"
#include <stdio.h>

static const double MOMENTUM = 0.9, EPSILON = 1e-5;

static keel_symbol block(keel_net *n, keel_symbol x, const char *name, int64_t filters,
                         int64_t stride, bool project)
{
    char add[48];
    keel_symbol shortcut = x;
    if (project) {
        shortcut = keel_net_conv(n, x, name, "_0_conv",
                                 &(keel_conv){ .filters = filters, .kernel = 1, .stride = stride });
        shortcut = keel_net_norm(n, shortcut, name, "_0_bn", MOMENTUM, EPSILON);
    }
    if (stride == 2) {
        char pad[48];
        snprintf(pad, sizeof pad, "%s_pad", name);
        x = keel_net_pad(n, x, pad, 1, 1, 1, 1); /* the same on both sides, as in the paper */
    }
    x = keel_net_conv(
        n, x, name, "_1_conv",
        &(keel_conv){ .filters = filters, .kernel = 3, .stride = stride, .same = stride == 1 });
    x = keel_net_norm(n, x, name, "_1_bn", MOMENTUM, EPSILON);
    x = keel_net_relu(n, x, name, "_1_relu");
    x = keel_net_conv(n, x, name, "_2_conv",
                      &(keel_conv){ .filters = filters, .kernel = 3, .same = true });
    x = keel_net_norm(n, x, name, "_2_bn", MOMENTUM, EPSILON);
    snprintf(add, sizeof add, "%s_add", name);
    x = keel_net_add(n, add, shortcut, x);
    return keel_net_relu(n, x, name, "_out");
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    char name[32];
    x = keel_net_pad(n, x, "conv1_pad", 3, 3, 3, 3);
    x = keel_net_conv(n, x, "conv1", "_conv",
                      &(keel_conv){ .filters = 64, .kernel = 7, .stride = 2 });
    x = keel_net_norm(n, x, "conv1", "_bn", MOMENTUM, EPSILON);
    x = keel_net_relu(n, x, "conv1", "_relu");
    x = keel_net_pad(n, x, "pool1_pad", 1, 1, 1, 1);
    x = keel_net_call(n, "MaxPooling2D",
                      KEEL_ARGS(KEEL_ARG_STR("name", "pool1_pool"),
                                KEEL_ARG_INTS("pool_size", 3, 3), KEEL_ARG_INTS("strides", 2, 2)),
                      x);
    for (int stage = 2; stage <= 5; stage++)
        for (int i = 1; i <= 2; i++) {
            const bool shrinks = stage > 2 && i == 1;
            snprintf(name, sizeof name, "conv%d_block%d", stage, i);
            x = block(n, x, name, 64 << (stage - 2), shrinks ? 2 : 1, shrinks);
        }
    return keel_net_call(n, "GlobalAveragePooling2D", KEEL_ARGS(KEEL_ARG_STR("name", "avg_pool")),
                         x);
}

const keel_architecture keel_architecture_resnet18 = {
    .name = "resnet18",
    .summary = "ResNet-18: 8 basic blocks, 11 million parameters",
    .rank = 3,
    .scale = 1.0 / 255,
    .head = "predictions",
    .build = build,
};
