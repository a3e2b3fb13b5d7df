/* DenseNet-121 as keras.applications.DenseNet121 builds it: Huang et al. 2017, arXiv 1608.06993.
 * Each block adds its 32 channels to all that came before. Layers have Keras's names. */
#include "architecture.h"
#include <stdio.h>

enum { GROWTH = 32 };
static const double MOMENTUM = 0.99, EPSILON = 1.001e-5;

static keel_symbol norm_relu(keel_net *n, keel_symbol x, const char *name, const char *norm,
                             const char *relu)
{
    x = keel_net_norm(n, x, name, norm, MOMENTUM, EPSILON);
    return keel_net_relu(n, x, name, relu);
}

static keel_symbol block(keel_net *n, keel_symbol x, const char *name)
{
    char concat[48];
    keel_symbol y = norm_relu(n, x, name, "_0_bn", "_0_relu");
    y = keel_net_conv(n, y, name, "_1_conv", &(keel_conv){ .filters = 4 * GROWTH, .kernel = 1 });
    y = norm_relu(n, y, name, "_1_bn", "_1_relu");
    y = keel_net_conv(n, y, name, "_2_conv",
                      &(keel_conv){ .filters = GROWTH, .kernel = 3, .same = true });
    snprintf(concat, sizeof concat, "%s_concat", name);
    return keel_net_join(n, "Concatenate", KEEL_ARGS(KEEL_ARG_STR("name", concat)), x, y);
}

static keel_symbol halve(keel_net *n, keel_symbol x, const char *name, int64_t channels)
{
    char pool[48];
    x = norm_relu(n, x, name, "_bn", "_relu");
    x = keel_net_conv(n, x, name, "_conv", &(keel_conv){ .filters = channels, .kernel = 1 });
    snprintf(pool, sizeof pool, "%s_pool", name);
    return keel_net_call(n, "AveragePooling2D",
                         KEEL_ARGS(KEEL_ARG_STR("name", pool), KEEL_ARG_INTS("pool_size", 2, 2),
                                   KEEL_ARG_INTS("strides", 2, 2)),
                         x);
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    static const int blocks[] = { 6, 12, 24, 16 };
    char name[32];
    int64_t channels = 64;
    x = keel_net_pad(n, x, "zero_padding2d", 3, 3, 3, 3);
    x = keel_net_conv(n, x, "conv1", "_conv",
                      &(keel_conv){ .filters = channels, .kernel = 7, .stride = 2 });
    x = norm_relu(n, x, "conv1", "_bn", "_relu");
    x = keel_net_pad(n, x, "zero_padding2d_1", 1, 1, 1, 1);
    x = keel_net_call(n, "MaxPooling2D",
                      KEEL_ARGS(KEEL_ARG_STR("name", "pool1"), KEEL_ARG_INTS("pool_size", 3, 3),
                                KEEL_ARG_INTS("strides", 2, 2)),
                      x);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 1; i <= blocks[stage]; i++, channels += GROWTH) {
            snprintf(name, sizeof name, "conv%d_block%d", stage + 2, i);
            x = block(n, x, name);
        }
        if (stage == 3) break;
        snprintf(name, sizeof name, "pool%d", stage + 2);
        x = halve(n, x, name, channels /= 2);
    }
    x = norm_relu(n, x, "", "bn", "relu");
    return keel_net_call(n, "GlobalAveragePooling2D", KEEL_ARGS(KEEL_ARG_STR("name", "avg_pool")),
                         x);
}

const keel_architecture keel_architecture_densenet121 = {
    .name = "densenet121",
    .summary = "DenseNet-121 of keras.applications: 8 million parameters",
    .rank = 3,
    .scale = 1.0 / 255,
    .head = "predictions",
    .build = build,
};
