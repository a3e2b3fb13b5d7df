/* EfficientNet-B0 as keras.applications.EfficientNetB0 builds it: Tan and Le 2019, arXiv
 * 1905.11946, table 1. Each block widens, filters by depth, weighs the channels by what is in the
 * whole image, and narrows. Layers have Keras's names, except that the Rescaling is the one of
 * `keel new`, and that the last layer begins with Dense's usual weights. */
#include "architecture.h"
#include <stdio.h>

static const double MOMENTUM = 0.99, EPSILON = 1e-3, DROP_BLOCKS = 0.2, DROPOUT = 0.2;
static const char *const KERNEL =
    "{\"class_name\": \"VarianceScaling\", \"config\": {\"scale\": 2.0, \"mode\": \"fan_out\","
    " \"distribution\": \"truncated_normal\"}}";

typedef struct row { /* of table 1 */
    int64_t kernel, blocks, in, out, expansion, stride;
} row;

typedef struct image { /* the output of a block */
    keel_symbol x;
    int64_t height, width;
} image;

static keel_symbol norm_swish(keel_net *n, keel_symbol x, const char *prefix, const char *norm,
                              const char *swish)
{
    x = keel_net_norm(n, x, prefix, norm, MOMENTUM, EPSILON);
    return keel_net_activation(n, x, prefix, swish, "silu");
}

/* Padding at the other side than "same", as in the trained model. */
static image pad(keel_net *n, image in, const char *name, int64_t kernel)
{
    const int after = (int)(kernel / 2);
    in.x = keel_net_pad(n, in.x, name, after - (in.height % 2 == 0), after,
                        after - (in.width % 2 == 0), after);
    in.height = (in.height + 1) / 2;
    in.width = (in.width + 1) / 2;
    return in;
}

/* Each channel times a number from 0 to 1 that depends on the means of all channels. */
static keel_symbol excite(keel_net *n, keel_symbol x, const char *prefix, int64_t channels,
                          int64_t narrow)
{
    char squeeze[32], reshape[32], times[32];
    snprintf(squeeze, sizeof squeeze, "%.16sse_squeeze", prefix);
    snprintf(reshape, sizeof reshape, "%.16sse_reshape", prefix);
    snprintf(times, sizeof times, "%.16sse_excite", prefix);
    keel_symbol y =
        keel_net_call(n, "GlobalAveragePooling2D", KEEL_ARGS(KEEL_ARG_STR("name", squeeze)), x);
    y = keel_net_call(
        n, "Reshape",
        KEEL_ARGS(KEEL_ARG_STR("name", reshape), KEEL_ARG_INTS("target_shape", 1, 1, channels)), y);
    y = keel_net_conv(n, y, prefix, "se_reduce",
                      &(keel_conv){ narrow, 1, .same = true, .bias = true, .activation = "silu",
                                    .initializer = KERNEL });
    y = keel_net_conv(n, y, prefix, "se_expand",
                      &(keel_conv){ channels, 1, .same = true, .bias = true,
                                    .activation = "sigmoid", .initializer = KERNEL });
    return keel_net_join(n, "Multiply", KEEL_ARGS(KEEL_ARG_STR("name", times)), x, y);
}

static keel_symbol drop_rows(keel_net *n, keel_symbol x, const char *prefix, double rate)
{
    char name[32];
    if (!(rate > 0)) return x;
    snprintf(name, sizeof name, "%.16sdrop", prefix);
    return keel_net_call(n, "Dropout",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_FLOAT("rate", rate),
                                   KEEL_ARG_JSON("noise_shape", "[null, 1, 1, 1]")),
                         x);
}

static image block(keel_net *n, image in, const char *prefix, const row *r, double drop)
{
    char name[32];
    image at = in;
    const int64_t wide = r->in * r->expansion;
    if (r->expansion > 1) {
        at.x = keel_net_conv(n, at.x, prefix, "expand_conv",
                             &(keel_conv){ wide, 1, .same = true, .initializer = KERNEL });
        at.x = norm_swish(n, at.x, prefix, "expand_bn", "expand_activation");
    }
    snprintf(name, sizeof name, "%.16sdwconv_pad", prefix);
    if (r->stride == 2) at = pad(n, at, name, r->kernel);
    at.x = keel_net_conv(
        n, at.x, prefix, "dwconv",
        &(keel_conv){ 0, r->kernel, r->stride, .same = r->stride == 1, .initializer = KERNEL });
    at.x = norm_swish(n, at.x, prefix, "bn", "activation");
    at.x = excite(n, at.x, prefix, wide, r->in / 4);
    at.x = keel_net_conv(n, at.x, prefix, "project_conv",
                         &(keel_conv){ r->out, 1, .same = true, .initializer = KERNEL });
    at.x = keel_net_norm(n, at.x, prefix, "project_bn", MOMENTUM, EPSILON);
    if (r->stride != 1 || r->in != r->out) return at;
    snprintf(name, sizeof name, "%.16sadd", prefix);
    at.x = keel_net_add(n, name, drop_rows(n, at.x, prefix, drop), in.x);
    return at;
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    static const row rows[] = { { 3, 1, 32, 16, 1, 1 },  { 3, 2, 16, 24, 6, 2 },
                                { 5, 2, 24, 40, 6, 2 },  { 3, 3, 40, 80, 6, 2 },
                                { 5, 3, 80, 112, 6, 1 }, { 5, 4, 112, 192, 6, 2 },
                                { 3, 1, 192, 320, 6, 1 } };
    enum { BLOCKS = 16 };
    char prefix[16];
    x = keel_net_call(n, "Normalization", KEEL_ARGS(KEEL_ARG_INT("axis", 3)), x);
    image at = pad(n, (image){ x, n->input.dim[0], n->input.dim[1] }, "stem_conv_pad", 3);
    at.x = keel_net_conv(n, at.x, "stem", "_conv", &(keel_conv){ 32, 3, 2, .initializer = KERNEL });
    at.x = norm_swish(n, at.x, "stem", "_bn", "_activation");
    for (int stage = 0, count = 0; stage < 7; stage++) {
        row r = rows[stage];
        for (int i = 0; i < r.blocks; i++, count++) {
            snprintf(prefix, sizeof prefix, "block%d%c_", stage + 1, 'a' + i);
            at = block(n, at, prefix, &r, DROP_BLOCKS * count / BLOCKS);
            r.in = r.out;
            r.stride = 1;
        }
    }
    x = keel_net_conv(n, at.x, "top", "_conv",
                      &(keel_conv){ 1280, 1, .same = true, .initializer = KERNEL });
    x = norm_swish(n, x, "top", "_bn", "_activation");
    x = keel_net_call(n, "GlobalAveragePooling2D", KEEL_ARGS(KEEL_ARG_STR("name", "avg_pool")), x);
    return keel_net_dropout(n, x, "top", "_dropout", DROPOUT);
}

const keel_architecture keel_architecture_efficientnetb0 = {
    .name = "efficientnetb0",
    .summary = "EfficientNet-B0 of keras.applications: 5 million parameters",
    .rank = 3,
    .scale = 1.0 / 255,
    .head = "predictions",
    .build = build,
};
