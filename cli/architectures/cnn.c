/* Stages of 3x3 convolution, BatchNorm, relu and 2x2 max pooling. The convolutions have no bias,
 * since BatchNorm subtracts the mean, and with it any bias. */
#include "architecture.h"
#include <stdio.h>

static keel_symbol build(keel_net *n, keel_symbol x)
{
    char stage[32];
    const int64_t usual[] = { 32, 64, 128, 128 };
    const int64_t *filters = n->n_size ? n->size : usual;
    const int count = n->n_size ? n->n_size : 4;
    for (int i = 0; i < count; i++) {
        snprintf(stage, sizeof stage, "stage%d", i + 1);
        x = keel_net_conv(n, x, stage, "_conv",
                          &(keel_conv){ .filters = filters[i], .kernel = 3, .same = true });
        x = keel_net_norm(n, x, stage, "_bn", 0.9, 1e-3); /* for few steps: below Keras's 0.99 */
        x = keel_net_relu(n, x, stage, "_relu");
        x = keel_net_call(n, "MaxPooling2D", KEEL_ARGS(KEEL_ARG_INTS("pool_size", 2, 2)), x);
    }
    x = keel_net_call(n, "GlobalAveragePooling2D", KEEL_ARGS(KEEL_ARG_STR("name", "avg_pool")), x);
    if (n->dropout > 0)
        x = keel_net_call(n, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", n->dropout)), x);
    return x;
}

const keel_architecture keel_architecture_cnn = {
    .name = "cnn",
    .summary =
        "3x3 convolutions of --sizes filters (32,64,128,128), BatchNorm, relu, 2x2 max pooling",
    .rank = 3,
    .scale = 1.0 / 255,
    .head = "predictions",
    .build = build,
};
