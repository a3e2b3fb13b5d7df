/* The functions that build architectures; see architecture.h. */
#include "architecture.h"
#include <stdio.h>

enum { NAME_MAX_ = 96 };

keel_symbol keel_net_call_with(keel_net *n, const char *layer, const keel_arg *args,
                               const keel_arg *with, const keel_symbol *in, int n_in)
{
    keel_symbol y = in[0];
    if (n->status >= 0) n->status = keel_model_call_with(n->model, layer, args, with, in, n_in, &y);
    return y;
}

keel_symbol keel_net_call(keel_net *n, const char *layer, const keel_arg *args, keel_symbol x)
{
    return keel_net_call_with(n, layer, args, NULL, &x, 1);
}

keel_symbol keel_net_join(keel_net *n, const char *layer, const keel_arg *args, keel_symbol a,
                          keel_symbol b)
{
    return keel_net_call_with(n, layer, args, NULL, (const keel_symbol[]){ a, b }, 2);
}

keel_symbol keel_net_add(keel_net *n, const char *name, keel_symbol a, keel_symbol b)
{
    return keel_net_join(n, "Add", KEEL_ARGS(KEEL_ARG_STR("name", name)), a, b);
}

keel_symbol keel_net_input(keel_net *n)
{
    const keel_arg *whole = KEEL_ARGS(KEEL_ARG_STR("dtype", "int32"));
    keel_symbol x = 0;
    if (n->status >= 0)
        n->status = keel_model_input(n->model, &n->input, n->vocabulary ? whole : NULL, &x);
    return x;
}

keel_symbol keel_net_head(keel_net *n, const char *name, keel_symbol x)
{
    return keel_net_call(
        n, "Dense",
        KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("units", n->classes),
                  KEEL_ARG_STR("activation", n->classes > 1 ? "softmax" : "sigmoid")),
        x);
}

keel_symbol keel_net_conv(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                          const keel_conv *c)
{
    char name[NAME_MAX_];
    const int64_t stride = c->stride ? c->stride : 1;
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    const keel_arg args[] = {
        KEEL_ARG_STR("name", name),
        KEEL_ARG_INTS("kernel_size", c->kernel, c->kernel),
        KEEL_ARG_INTS("strides", stride, stride),
        KEEL_ARG_STR("padding", c->same ? "same" : "valid"),
        KEEL_ARG_BOOL("use_bias", c->bias),
        KEEL_ARG_STR("activation", c->activation ? c->activation : "linear"),
        KEEL_ARG_JSON(c->filters ? "kernel_initializer" : "depthwise_initializer",
                      c->initializer ? c->initializer : "\"glorot_uniform\""),
        { .key = c->filters ? "filters" : NULL, .kind = KEEL_ARG_IS_INT, .number = c->filters },
        KEEL_ARG_INT("groups", c->groups ? c->groups : 1),
        { .key = NULL },
    };
    return keel_net_call(n, c->filters ? "Conv2D" : "DepthwiseConv2D", args, x);
}

keel_symbol keel_net_norm(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                          double momentum, double epsilon)
{
    char name[NAME_MAX_];
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    return keel_net_call(n, "BatchNormalization",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_FLOAT("momentum", momentum),
                                   KEEL_ARG_FLOAT("epsilon", epsilon)),
                         x);
}

keel_symbol keel_net_activation(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                                const char *activation)
{
    char name[NAME_MAX_];
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    return keel_net_call(
        n, "Activation",
        KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_STR("activation", activation)), x);
}

keel_symbol keel_net_relu(keel_net *n, keel_symbol x, const char *prefix, const char *suffix)
{
    return keel_net_activation(n, x, prefix, suffix, "relu");
}

keel_symbol keel_net_dense(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                           int64_t units, const char *activation)
{
    char name[NAME_MAX_];
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    return keel_net_call(n, "Dense",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("units", units),
                                   KEEL_ARG_STR("activation", activation ? activation : "linear")),
                         x);
}

keel_symbol keel_net_layer_norm(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                                double epsilon)
{
    char name[NAME_MAX_];
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    return keel_net_call(n, "LayerNormalization",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_FLOAT("epsilon", epsilon)),
                         x);
}

keel_symbol keel_net_dropout(keel_net *n, keel_symbol x, const char *prefix, const char *suffix,
                             double rate)
{
    char name[NAME_MAX_];
    if (!(rate > 0)) return x;
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    return keel_net_call(n, "Dropout",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_FLOAT("rate", rate)), x);
}

static keel_symbol embed(keel_net *n, keel_symbol x, const char *name, int64_t count, int64_t width)
{
    return keel_net_call(n, "Embedding",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("input_dim", count),
                                   KEEL_ARG_INT("output_dim", width)),
                         x);
}

/* Places are counted in the model, 0 1 2 ..., so that it has one input. */
keel_symbol keel_net_token_and_position(keel_net *n, keel_symbol x, int64_t width)
{
    const keel_symbol ones = keel_net_call(n, "ops.OnesLike", NULL, x);
    const keel_symbol counted =
        keel_net_call(n, "ops.Cumsum", KEEL_ARGS(KEEL_ARG_INT("axis", 1)), ones);
    const keel_symbol places =
        keel_net_call_with(n, "ops.Subtract", NULL, KEEL_ARGS(KEEL_ARG_INT("x2", 1)), &counted, 1);
    return keel_net_add(n, "embedding", embed(n, x, "token_embedding", n->vocabulary, width),
                        embed(n, places, "position_embedding", n->input.dim[0], width));
}

keel_symbol keel_net_pad(keel_net *n, keel_symbol x, const char *name, int top, int bottom,
                         int left, int right)
{
    char padding[64];
    snprintf(padding, sizeof padding, "[[%d, %d], [%d, %d]]", top, bottom, left, right);
    return keel_net_call(n, "ZeroPadding2D",
                         KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_JSON("padding", padding)),
                         x);
}
