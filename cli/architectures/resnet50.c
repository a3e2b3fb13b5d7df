/* ResNet-50 as keras.applications.ResNet50 builds it (version 1, with biases): He, Zhang, Ren, Sun
 * 2015, arXiv 1512.03385. Layers have Keras's names. */
#include "architecture.h"
#include <stdio.h>

static const double MOMENTUM = 0.99, EPSILON = 1.001e-5;

static keel_symbol unit(keel_net *n, keel_symbol x, const char *name, const char *conv,
                        const char *norm, const keel_conv *c)
{
    x = keel_net_conv(n, x, name, conv, c);
    return keel_net_norm(n, x, name, norm, MOMENTUM, EPSILON);
}

static keel_symbol block(keel_net *n, keel_symbol x, const char *name, int64_t filters,
                         int64_t stride, bool project)
{
    char add[48];
    const keel_conv widen = { 4 * filters, 1, project ? stride : 1, .bias = true };
    keel_symbol shortcut = x;
    if (project) shortcut = unit(n, x, name, "_0_conv", "_0_bn", &widen);
    x = unit(n, x, name, "_1_conv", "_1_bn", &(keel_conv){ filters, 1, stride, .bias = true });
    x = keel_net_relu(n, x, name, "_1_relu");
    x = unit(n, x, name, "_2_conv", "_2_bn",
             &(keel_conv){ filters, 3, 1, .same = true, .bias = true });
    x = keel_net_relu(n, x, name, "_2_relu");
    x = unit(n, x, name, "_3_conv", "_3_bn", &(keel_conv){ 4 * filters, 1, 1, .bias = true });
    snprintf(add, sizeof add, "%s_add", name);
    x = keel_net_add(n, add, shortcut, x);
    return keel_net_relu(n, x, name, "_out");
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    static const struct {
        int64_t filters;
        int blocks;
    } stages[] = { { 64, 3 }, { 128, 4 }, { 256, 6 }, { 512, 3 } };
    char name[32];
    x = keel_net_pad(n, x, "conv1_pad", 3, 3, 3, 3);
    x = unit(n, x, "conv1", "_conv", "_bn", &(keel_conv){ 64, 7, 2, .bias = true });
    x = keel_net_relu(n, x, "conv1", "_relu");
    x = keel_net_pad(n, x, "pool1_pad", 1, 1, 1, 1);
    x = keel_net_call(n, "MaxPooling2D",
                      KEEL_ARGS(KEEL_ARG_STR("name", "pool1_pool"),
                                KEEL_ARG_INTS("pool_size", 3, 3), KEEL_ARG_INTS("strides", 2, 2)),
                      x);
    for (int s = 0; s < 4; s++)
        for (int i = 0; i < stages[s].blocks; i++) {
            snprintf(name, sizeof name, "conv%d_block%d", s + 2, i + 1);
            x = block(n, x, name, stages[s].filters, s > 0 && i == 0 ? 2 : 1, i == 0);
        }
    return keel_net_call(n, "GlobalAveragePooling2D", KEEL_ARGS(KEEL_ARG_STR("name", "avg_pool")),
                         x);
}

const keel_architecture keel_architecture_resnet50 = {
    .name = "resnet50",
    .summary = "ResNet-50 of keras.applications: 24 million parameters",
    .rank = 3,
    .scale = 1.0 / 255,
    .head = "predictions",
    .build = build,
};
