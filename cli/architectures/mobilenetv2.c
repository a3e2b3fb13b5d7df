/* MobileNetV2 as keras.applications.MobileNetV2 builds it (alpha 1): Sandler et al. 2018, arXiv
 * 1801.04381. Layers have Keras's names. Pixels are -1..1. */
#include "architecture.h"
#include <stdio.h>

static const double MOMENTUM = 0.999, EPSILON = 1e-3;

static keel_symbol norm_relu6(keel_net *n, keel_symbol x, const char *prefix, const char *norm,
                              const char *relu)
{
    char name[48];
    x = keel_net_norm(n, x, prefix, norm, MOMENTUM, EPSILON);
    snprintf(name, sizeof name, "%s%s", prefix, relu);
    return keel_net_call(n, "ReLU",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_FLOAT("max_value", 6)), x);
}

typedef struct image { /* the output of a block */
    keel_symbol x;
    int64_t height, width, channels;
} image;

static image block(keel_net *n, image in, int id, int64_t expansion, int64_t filters,
                   int64_t stride)
{
    char prefix[32], name[48];
    image out = { in.x, in.height, in.width, filters };
    snprintf(prefix, sizeof prefix, id ? "block_%d_" : "expanded_conv_", id);
    if (id) {
        out.x = keel_net_conv(
            n, out.x, prefix, "expand",
            &(keel_conv){ .filters = expansion * in.channels, .kernel = 1, .same = true });
        out.x = norm_relu6(n, out.x, prefix, "expand_BN", "expand_relu");
    }
    if (stride == 2) { /* padding at the other side than "same", as in Keras's trained model */
        snprintf(name, sizeof name, "%spad", prefix);
        out.x = keel_net_pad(n, out.x, name, (int)(in.height % 2), 1, (int)(in.width % 2), 1);
        out.height = (in.height + 1) / 2;
        out.width = (in.width + 1) / 2;
    }
    out.x = keel_net_conv(n, out.x, prefix, "depthwise",
                          &(keel_conv){ .kernel = 3, .stride = stride, .same = stride == 1 });
    out.x = norm_relu6(n, out.x, prefix, "depthwise_BN", "depthwise_relu");
    out.x = keel_net_conv(n, out.x, prefix, "project",
                          &(keel_conv){ .filters = filters, .kernel = 1, .same = true });
    out.x = keel_net_norm(n, out.x, prefix, "project_BN", MOMENTUM, EPSILON);
    if (in.channels == filters && stride == 1) {
        snprintf(name, sizeof name, "%sadd", prefix);
        out.x = keel_net_add(n, name, in.x, out.x);
    }
    return out;
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    static const struct {
        int64_t expansion, filters, blocks, stride; /* table 2 of the paper */
    } rows[] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
                 { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    image at = { 0, (n->input.dim[0] + 1) / 2, (n->input.dim[1] + 1) / 2, 32 };
    at.x = keel_net_conv(n, x, "Conv1", "",
                         &(keel_conv){ .filters = 32, .kernel = 3, .stride = 2, .same = true });
    at.x = norm_relu6(n, at.x, "", "bn_Conv1", "Conv1_relu");
    for (int r = 0, id = 0; r < 7; r++)
        for (int64_t i = 0; i < rows[r].blocks; i++, id++)
            at = block(n, at, id, rows[r].expansion, rows[r].filters, i == 0 ? rows[r].stride : 1);
    x = keel_net_conv(n, at.x, "Conv_1", "", &(keel_conv){ .filters = 1280, .kernel = 1 });
    x = norm_relu6(n, x, "", "Conv_1_bn", "out_relu");
    return keel_net_call(n, "GlobalAveragePooling2D", NULL, x);
}

const keel_architecture keel_architecture_mobilenetv2 = {
    .name = "mobilenetv2",
    .summary = "MobileNetV2 of keras.applications: 2 million parameters",
    .rank = 3,
    .scale = 1.0 / 127.5,
    .offset = -1,
    .head = "predictions",
    .build = build,
};
