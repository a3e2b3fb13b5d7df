/* Residual blocks of 1D convolutions over sound (or its spectrum), the network of Keras's example
 * speaker_recognition_using_cnn. */
#include "architecture.h"
#include <stdio.h>

static keel_symbol convolve(keel_net *n, keel_symbol x, const char *block, const char *suffix,
                            int64_t filters, int64_t kernel)
{
    char name[48];
    snprintf(name, sizeof name, "%s%s", block, suffix);
    return keel_net_call(n, "Conv1D",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("filters", filters),
                                   KEEL_ARG_INTS("kernel_size", kernel),
                                   KEEL_ARG_STR("padding", "same")),
                         x);
}

static keel_symbol block(keel_net *n, keel_symbol x, const char *name, int64_t filters, int convs)
{
    char part[48];
    const keel_symbol beside = convolve(n, x, name, "_0_conv", filters, 1);
    for (int i = 1; i <= convs; i++) {
        snprintf(part, sizeof part, "_%d_conv", i);
        x = convolve(n, x, name, part, filters, 3);
        snprintf(part, sizeof part, "_%d_relu", i);
        if (i < convs) x = keel_net_relu(n, x, name, part);
    }
    snprintf(part, sizeof part, "%s_add", name);
    x = keel_net_relu(n, keel_net_add(n, part, x, beside), name, "_out");
    return keel_net_call(n, "MaxPooling1D",
                         KEEL_ARGS(KEEL_ARG_INTS("pool_size", 2), KEEL_ARG_INTS("strides", 2)), x);
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    static const struct {
        int64_t filters;
        int convs;
    } rows[] = { { 16, 2 }, { 32, 2 }, { 64, 3 }, { 128, 3 }, { 128, 3 } };
    char name[32];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "block%d", i + 1);
        x = block(n, x, name, rows[i].filters, rows[i].convs);
    }
    x = keel_net_call(n, "AveragePooling1D",
                      KEEL_ARGS(KEEL_ARG_INTS("pool_size", 3), KEEL_ARG_INTS("strides", 3)), x);
    x = keel_net_call(n, "Flatten", NULL, x);
    x = keel_net_dense(n, x, "dense_1", "", 256, "relu");
    return keel_net_dense(n, x, "dense_2", "", 128, "relu");
}

const keel_architecture keel_architecture_conv1d = {
    .name = "conv1d",
    .summary = "residual 1D convolutions over sound, as in Keras's speaker recognition",
    .takes = "sound, as 8000,1",
    .rank = 2,
    .head = "predictions",
    .build = build,
};
