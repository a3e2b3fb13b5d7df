/* Fusing ops changes nothing but speed: which ops are left of a graph, and training with and
 * without it, to the bit in float32 and to rounding in bfloat16, on one lane and several. */
#include "base/memory.h"
#include "graph/fuse.h"
#include "graph_add.h"
#include "keel/keel.h"
#include "must.h"
#include "ops/all.h"
#include "ops/args.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 26, BATCH = 8, SIDE = 14, CLASSES = 4 };

/* ---- what is left of a graph ----------------------------------------------------------------- */

typedef struct builder {
    keel_graph *g;
    keel_value at;
} builder;

static keel_value add(builder *b, const char *layer, const char *op, const void *args,
                      const keel_value *in, int n_in)
{
    const int64_t c = keel_graph_spec(b->g, in[0])->shape.dim[2];
    const keel_variable weight[] = { 0, 1, 2, 3 };
    const keel_spec each = { KEEL_FLOAT32, { 1, { c } } };
    const keel_spec of_channels[] = { each, each, each, each };
    const int64_t rows = strncmp(layer, "1x", 2) ? 3 : 1,
                  columns = strncmp(layer, "1x1", 3) ? 3 : 1;
    const bool bn = !strcmp(op, "batch_norm"), conv = !strcmp(op, "conv2d");
    const int64_t of = conv ? c / ((const keel_conv2d_args *)args)->groups : c;
    const int64_t filters = !strcmp(layer, "1x1 to 2") ? 2 : c;
    const keel_spec kernel = { KEEL_FLOAT32, { 4, { rows, columns, of, filters } } };
    const bool ln = !strcmp(op, "layer_norm");
    keel_value out;
    b->g->layer = layer;
    must(graph_add(b->g, keel_op_find(op), args, in, n_in, weight, conv ? &kernel : of_channels,
                   bn     ? 4
                   : ln   ? 2
                   : conv ? 1
                          : 0,
                   &out));
    return out;
}

static const keel_batch_norm_args bn = {
    .epsilon = 1e-3, .momentum = 0.9, .center = true, .scale = true
};
static const keel_conv2d_args conv = { .strides = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 };
static const keel_conv2d_args conv_by_2 = { .strides = { 2, 2 },
                                            .dilation = { 1, 1 },
                                            .groups = 1 };
static const keel_conv2d_args conv_in_groups = { .strides = { 1, 1 },
                                                 .dilation = { 1, 1 },
                                                 .groups = 5 };
static const keel_upsample_args high = { .axis = 0, .factor = 2 },
                                wide = { .axis = -2, .factor = 3 },
                                deep = { .axis = 2, .factor = 2 },
                                twice = { .axis = 1, .factor = 2 },
                                between = { .axis = 1, .factor = 2, .between = true };
static const keel_pool2d_args mean_by_1 = { .pool = { 2, 2 }, .strides = { 1, 1 } };
static const keel_reshape_args view = { .shape = { 3, { 7, 7, 5 } } };
static const keel_pool2d_args pool = { .pool = { 3, 3 }, .strides = { 2, 2 } };
static const keel_zero_pad2d_args pad = { .pad = { 1, 1, 1, 1 } };
static const keel_layer_norm_args ln = {
    .dims = 1, .epsilon = 1e-3, .center = true, .scale = true
};
static const keel_relu_args relu, capped = { .capped = true, .max_value = 6 },
                                  leaky = { .negative_slope = 0.1 };

/* Words of a graph in a line, each reading the one before: an op, "+" adds input 0, "keep" says
 * that somebody will ask for what is there. After it: what is left, as layers, in the same way. */
static void what_is_left_of_a_graph(void **unused)
{
    (void)unused;
    static const struct {
        const char *words[8], *left;
    } cases[] = {
        { { "bn", "relu" }, "bn + relu" },
        { { "bn", "relu6" }, "bn + relu6" },
        { { "bn", "capped" }, "bn + capped" },
        { { "bn", "leaky" }, "bn, leaky" },
        { { "bn", "silu" }, "bn + silu" },
        { { "bn", "silu", "silu" }, "bn + silu, silu" },
        { { "bn", "silu", "relu" }, "bn + silu, relu" },
        { { "bn", "silu", "+" }, "bn + silu, +" },
        { { "bn", "+", "silu" }, "bn + +, silu" },
        { { "bn", "relu", "silu" }, "bn + relu, silu" },
        { { "bn", "keep", "silu" }, "bn, silu" },
        { { "bn", "+" }, "bn + +" },
        { { "bn", "+", "relu" }, "bn + + + relu" },
        { { "bn", "relu", "+" }, "bn + relu, +" },
        { { "bn", "relu", "relu" }, "bn + relu, relu" },
        { { "bn", "keep", "relu" }, "bn, relu" },
        { { "bn", "+", "keep", "relu" }, "bn + +, relu" },
        { { "conv", "relu" }, "conv, relu" },
        { { "conv", "relu", "pool" }, "conv, relu + pool" },
        { { "conv", "capped", "pool" }, "conv, capped, pool" },
        { { "conv", "relu", "view", "pool" }, "conv, view, relu + pool" },
        { { "conv", "relu", "view", "view", "pool" }, "conv, view, view, relu + pool" },
        { { "conv", "relu", "keep", "view", "pool" }, "conv, relu, view, pool" },
        { { "conv", "relu", "view", "keep", "pool" }, "conv, relu, view, pool" },
        { { "conv", "capped", "view", "pool" }, "conv, capped, view, pool" },
        { { "conv", "relu", "pad", "pool" }, "conv, relu + pad + pool" },
        { { "bn", "relu", "pad", "pool" }, "bn + relu, pad + pool" },
        { { "conv", "pad", "pool" }, "conv, pad, pool" },
        { { "conv", "relu", "keep", "pad", "pool" }, "conv, relu, pad + pool" },
        { { "pad", "conv" }, "pad + conv" },
        { { "pad", "pad", "conv" }, "pad, pad + conv" },
        { { "pad", "keep", "conv" }, "pad, conv" },
        { { "+", "ln" }, "+ + ln" },
        { { "ln", "+" }, "ln, +" },
        { { "+", "ln", "+", "ln" }, "+ + ln, + + ln" },
        { { "+", "keep", "ln" }, "+ + ln" },
        { { "+", "ln", "ln" }, "+ + ln, ln" },
        { { "+", "relu", "ln" }, "+, relu, ln" },
        { { "bn", "+", "ln" }, "bn + +, ln" },
        { { "pad", "conv", "bn", "relu", "pad", "conv" }, "pad + conv, bn + relu, pad + conv" },
        { { "high", "wide", "1x1" }, "1x1, high, wide" },
        { { "high", "wide", "1x1", "1x1'", "relu" }, "1x1, 1x1', high, wide, relu" },
        { { "high", "keep", "wide", "1x1" }, "high, 1x1, wide" },
        { { "high", "wide", "conv" }, "high, wide, conv" },
        { { "high", "1x3" }, "high, 1x3" },
        { { "high", "wide", "1x1 by 2" }, "high, wide, 1x1 by 2" },
        { { "high", "wide", "1x1 in groups" }, "high, wide, 1x1 in groups" },
        { { "deep", "1x1" }, "deep, 1x1" },
        { { "between", "1x1" }, "1x1, between" },
        { { "high", "pad", "1x1" }, "high, pad + 1x1" },
        { { "1x1", "mean" }, "mean, 1x1" },
        { { "1x1", "1x1'", "mean" }, "mean, 1x1, 1x1'" },
        { { "1x1", "relu", "mean" }, "1x1, relu, mean" },
        { { "1x1", "keep", "mean" }, "1x1, mean" },
        { { "conv", "mean" }, "conv, mean" },
        { { "1x1", "mean by 1" }, "1x1, mean by 1" },
        { { "mean by 1", "1x1" }, "mean by 1, 1x1" },
        { { "mean by 1", "1x1 to 2" }, "1x1 to 2, mean by 1" },
        { { "mean", "1x1 to 2" }, "mean, 1x1 to 2" },
        { { "1x1", "pool" }, "1x1, pool" },
        { { "high", "1x1", "mean" }, "1x1, high, mean" },
    };
    static const struct {
        const char *word, *op;
        const void *args;
    } ops[] = {
        { "bn", "batch_norm", &bn },
        { "conv", "conv2d", &conv },
        { "pool", "max_pool2d", &pool },
        { "pad", "zero_pad2d", &pad },
        { "relu", "relu", &relu },
        { "capped", "relu", &capped },
        { "leaky", "relu", &leaky },
        { "relu6", "relu6", NULL },
        { "+", "add", NULL },
        { "view", "reshape", &view },
        { "ln", "layer_norm", &ln },
        { "silu", "silu", NULL },
        { "1x1", "conv2d", &conv },
        { "1x1'", "conv2d", &conv },
        { "1x3", "conv2d", &conv },
        { "1x1 by 2", "conv2d", &conv_by_2 },
        { "1x1 to 2", "conv2d", &conv },
        { "1x1 in groups", "conv2d", &conv_in_groups },
        { "high", "upsample", &high },
        { "wide", "upsample", &wide },
        { "deep", "upsample", &deep },
        { "between", "upsample", &between },
        { "mean", "average_pool2d", &pool },
        { "mean by 1", "average_pool2d", &mean_by_1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        builder b = { 0 };
        keel_value first, keep[3];
        char left[200] = "";
        int n_keep = 0;
        must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
        must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 9, 9, 5 } } }, &first));
        b.at = first;
        b.at = add(&b, "first", "tanh", NULL, &first, 1);
        first = b.at;
        b.at = add(&b, "second", "tanh", NULL, &first, 1);
        for (const char *const *w = cases[i].words; *w; w++) {
            if (!strcmp(*w, "keep")) keep[n_keep++] = b.at;
            for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
                if (!strcmp(*w, ops[k].word))
                    b.at = add(&b, *w, ops[k].op, ops[k].args, (keel_value[]){ b.at, first },
                               !strcmp(*w, "+") ? 2 : 1);
        }
        const keel_shape shape = keel_graph_spec(b.g, b.at)->shape;
        keep[n_keep++] = b.at;
        must(keel_graph_fuse(b.g, keep, n_keep));
        for (int k = 2; k < b.g->n_node; k++) {
            const keel_graph_node *n = &b.g->node[k];
            if (k > 2) strcat(left, ", ");
            strcat(left, n->node.layer);
            for (int j = 0; j < n->node.n_out; j++) {
                assert_int_equal(b.g->value[n->out[j]].node, k);
                assert_int_equal(b.g->value[n->out[j]].index, j);
            }
            for (int j = 0; j < n->node.n_in; j++) {
                assert_true(n->in[j] < n->out[0]);
                assert_true(
                    keel_shape_equal(&n->node.in[j].shape, &b.g->value[n->in[j]].spec.shape));
            }
        }
        if (strcmp(left, cases[i].left))
            fail_msg("case %d leaves '%s', not '%s'", (int)i, left, cases[i].left);
        assert_true(keel_shape_equal(&shape, &keel_graph_spec(b.g, keep[n_keep - 1])->shape));
        keel_graph_destroy(b.g);
    }
}

/* Both inputs of a sum are upsampled, after `x` and after `z`. */
static void what_is_upsampled_is_added_before(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        const keel_upsample_args *x[2], *z[2];
        bool keep; /* what z becomes */
        const char *left;
        bool twice; /* x is upsampled for both, not z */
    } cases[] = {
        { "by both axes", { &high, &wide }, { &high, &wide }, false, "x, z, sum, high, wide" },
        { "by one axis", { &wide }, { &wide }, false, "x, z, sum, wide" },
        { "between places", { &between }, { &between }, false, "x, z, sum, between" },
        { "the channels", { &deep }, { &deep }, false, "x, z, deep, deep, sum" },
        { "in another order",
          { &high, &wide },
          { &wide, &high },
          false,
          "x, z, high, wide, wide, high, sum" },
        { "one is between places", { &twice }, { &between }, false, "x, z, twice, between, sum" },
        { "one is asked for", { &high }, { &high }, true, "x, z, high, high, sum" },
        { "of one value", { &high }, { &high }, false, "x, z, high, high, sum", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        builder b = { 0 };
        keel_value in, keep[2], end[2];
        char left[200] = "";
        must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
        must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 4, 6, 5 } } }, &in));
        end[0] = add(&b, "x", "tanh", NULL, &in, 1);
        end[1] = add(&b, "z", "sigmoid", NULL, &in, 1);
        if (cases[i].twice) end[1] = end[0];
        for (int k = 0; k < 4; k++) {
            const keel_upsample_args *a = k / 2 ? cases[i].z[k % 2] : cases[i].x[k % 2];
            const char *layer = a == &high ? "high" : a == &wide ? "wide" : "between";
            if (a == &deep) layer = "deep";
            if (a == &twice) layer = "twice";
            if (a) end[k / 2] = add(&b, layer, "upsample", a, &end[k / 2], 1);
        }
        keep[0] = add(&b, "sum", "add", NULL, end, 2);
        keep[1] = end[1];
        const keel_shape shape = keel_graph_spec(b.g, keep[0])->shape;
        must(keel_graph_fuse(b.g, keep, cases[i].keep ? 2 : 1));
        for (int k = 0; k < b.g->n_node; k++) {
            const keel_graph_node *n = &b.g->node[k];
            if (k) strcat(left, ", ");
            strcat(left, n->node.layer);
            for (int j = 0; j < n->node.n_in; j++) assert_true(n->in[j] < n->out[0]);
        }
        if (strcmp(left, cases[i].left)) fail_msg("%s: '%s'", cases[i].name, left);
        assert_true(keel_shape_equal(&shape, &keel_graph_spec(b.g, keep[0])->shape));
        keel_graph_destroy(b.g);
    }
}

static void places_of_volumes_are_convolved_before_they_are_upsampled(void **unused)
{
    (void)unused;
    static const keel_conv3d_args conv3d = { .strides = { 1, 1, 1 },
                                             .dilation = { 1, 1, 1 },
                                             .groups = 1 };
    for (int64_t depth = 1; depth < 3; depth++) { /* of the window */
        builder b = { 0 };
        keel_value v;
        const keel_spec kernel = { KEEL_FLOAT32, { 5, { depth, 1, 1, 5, 4 } } };
        const keel_upsample_args *up[] = { &high, &wide };
        must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
        must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 4, { 2, 3, 4, 5 } } }, &v));
        for (int k = 0; k < 2; k++)
            must(graph_add(b.g, &keel_op_upsample, up[k], &v, 1, NULL, NULL, 0, &v));
        must(graph_add(b.g, &keel_op_conv3d, &conv3d, &v, 1, (keel_variable[]){ 0 }, &kernel, 1,
                       &v));
        const keel_shape shape = keel_graph_spec(b.g, v)->shape;
        must(keel_graph_fuse(b.g, &v, 1));
        assert_ptr_equal(b.g->node[depth == 1 ? 0 : 2].node.op, &keel_op_conv3d);
        assert_true(keel_shape_equal(&shape, &keel_graph_spec(b.g, v)->shape));
        keel_graph_destroy(b.g);
    }
}

/* Each word reads x, and the last node adds up what they make. */
static void of_what_does_the_same_one_is_left(void **unused)
{
    (void)unused;
    static const struct {
        const char *words[3];
        bool keep;     /* what the second makes */
        bool together; /* one node reads all three, else each has a reader of its own */
        const char *left;
    } cases[] = {
        { { "relu", "relu", "tanh" }, false, false, "x, relu, tanh, r, r, r, sum" },
        { { "relu", "relu", "relu" }, false, false, "x, relu, r, r, r, sum" },
        { { "relu", "relu", "tanh" }, true, false, "x, relu, tanh, r, r, r, sum" },
        { { "relu", "capped", "relu6" }, false, false, "x, relu, capped, relu6, r, r, r, sum" },
        { { "leaky", "relu", "leaky" }, false, false, "x, leaky, relu, r, r, r, sum" },
        { { "tanh", "tanh", "relu" }, false, false, "x, tanh, tanh, relu, r, r, r, sum" },
        { { "bn", "bn", "relu" }, false, false, "x, bn, bn, relu, r, r, r, sum" },
        { { "relu", "relu", "tanh" }, false, true, "x, relu, relu, tanh, sum" },
        { { "relu", "relu", "relu" }, false, true, "x, relu, relu, relu, sum" },
    };
    static const struct {
        const char *word, *op;
        const void *args;
    } ops[] = {
        { "relu", "relu", &relu },  { "capped", "relu", &capped }, { "leaky", "relu", &leaky },
        { "relu6", "relu6", NULL }, { "tanh", "tanh", NULL },      { "bn", "batch_norm", &bn },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        builder b = { 0 };
        keel_value x, v[3], keep[2], read[3];
        char left[200] = "";
        must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
        must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 4, 4, 5 } } }, &x));
        x = add(&b, "x", "sigmoid", NULL, &x, 1);
        for (int w = 0; w < 3; w++)
            for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
                if (!strcmp(cases[i].words[w], ops[k].word))
                    v[w] = add(&b, ops[k].word, ops[k].op, ops[k].args, &x, 1);
        for (int w = 0; w < 3; w++)
            read[w] = cases[i].together ? v[w] : add(&b, "r", "softplus", NULL, &v[w], 1);
        keep[0] = add(&b, "sum", "add", NULL, read, 3);
        keep[1] = v[1];
        must(keel_graph_fuse(b.g, keep, cases[i].keep ? 2 : 1));
        const keel_graph_node *sum = &b.g->node[b.g->n_node - 1];
        for (int k = 0; k < b.g->n_node; k++) {
            if (k) strcat(left, ", ");
            strcat(left, b.g->node[k].node.layer);
        }
        if (strcmp(left, cases[i].left)) fail_msg("case %d leaves '%s'", (int)i, left);
        assert_int_equal(keep[0], sum->out[0]);
        assert_int_equal(sum->node.n_in, 3);
        for (int w = 0; w < 3; w++) { /* each still reads what its own word made */
            const keel_graph_node *r = &b.g->node[b.g->value[sum->in[w]].node];
            const keel_value in = cases[i].together ? sum->in[w] : r->in[0];
            if (cases[i].keep && w == 1) assert_int_equal(keep[1], in);
            assert_string_equal(b.g->node[b.g->value[in].node].node.layer, cases[i].words[w]);
            for (int k = 0; k < w; k++) assert_true(sum->in[k] != sum->in[w]);
        }
        keel_graph_destroy(b.g);
    }
}

/* Both rectifiers of what a batch_norm makes become its own. Somebody asks for the second, too. */
static void two_readers_that_do_the_same_are_one_for_fusing(void **unused)
{
    (void)unused;
    builder b = { 0 };
    keel_value x, v[2], keep[2];
    must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
    must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 4, 4, 5 } } }, &x));
    x = add(&b, "n", "batch_norm", &bn, &x, 1);
    for (int k = 0; k < 2; k++) {
        keep[1] = v[k] = add(&b, k ? "second" : "first", "relu", &relu, &x, 1);
        v[k] = add(&b, k ? "1x1" : "tanh", k ? "conv2d" : "tanh", k ? &conv : NULL, &v[k], 1);
    }
    keep[0] = add(&b, "sum", "add", NULL, v, 2);
    must(keel_graph_fuse(b.g, keep, 2));
    assert_int_equal(b.g->n_node, 4);
    assert_string_equal(b.g->node[0].node.layer, "n + first + second");
    assert_int_equal(keep[1], b.g->node[0].out[0]);
    for (int k = 1; k < 3; k++) assert_int_equal(b.g->node[k].in[0], b.g->node[0].out[0]);
    keel_graph_destroy(b.g);
}

/* The sum is taken into the batch_norm, which makes what is upsampled. */
static void a_sum_that_goes_before_may_be_fused(void **unused)
{
    (void)unused;
    builder b = { 0 };
    keel_value x, z, n, pair[2], sum;
    must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
    must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 4, 4, 5 } } }, &x));
    z = add(&b, "z", "tanh", NULL, &x, 1);
    n = add(&b, "n", "batch_norm", &bn, &x, 1);
    for (int k = 0; k < 2; k++) {
        pair[k] = add(&b, "high", "upsample", &high, k ? &z : &n, 1);
        pair[k] = add(&b, "wide", "upsample", &wide, &pair[k], 1);
    }
    sum = add(&b, "sum", "add", NULL, pair, 2);
    must(keel_graph_fuse(b.g, &sum, 1));
    assert_int_equal(b.g->n_node, 4);
    assert_string_equal(b.g->node[1].node.layer, "n + sum");
    assert_int_equal(b.g->node[2].in[0], b.g->node[1].out[0]);
    assert_int_equal(b.g->node[3].in[0], b.g->node[2].out[0]);
    assert_int_equal(sum, b.g->node[3].out[0]);
    keel_graph_destroy(b.g);
}

static void what_is_added_must_be_made_before_the_batch_norm(void **unused)
{
    (void)unused;
    for (int before = 0; before < 2; before++) {
        builder b = { 0 };
        keel_value x, n, z, sum;
        must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
        must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 4, 4, 5 } } }, &x));
        if (before) z = add(&b, "z", "tanh", NULL, &x, 1);
        n = add(&b, "n", "batch_norm", &bn, &x, 1);
        if (!before) z = add(&b, "z", "tanh", NULL, &x, 1);
        sum = add(&b, "sum", "add", NULL, (keel_value[]){ n, z }, 2);
        must(keel_graph_fuse(b.g, &sum, 1));
        assert_int_equal(b.g->n_node, before ? 2 : 3);
        keel_graph_destroy(b.g);
    }
}

static void the_sum_may_be_read_before_the_layer_norm_and_after_it(void **unused)
{
    (void)unused;
    builder b = { 0 };
    keel_value x, z, sum, early, y, late;
    must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
    must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 4, 4, 5 } } }, &x));
    z = add(&b, "z", "tanh", NULL, &x, 1);
    sum = add(&b, "sum", "add", NULL, (keel_value[]){ x, z }, 2);
    early = add(&b, "early", "tanh", NULL, &sum, 1);
    y = add(&b, "y", "layer_norm", &ln, &sum, 1);
    late = add(&b, "late", "add", NULL, (keel_value[]){ early, sum, y }, 3);
    must(keel_graph_fuse(b.g, &late, 1));
    assert_int_equal(b.g->n_node, 4);
    const keel_graph_node *n = b.g->node;
    assert_string_equal(n[1].node.op->name, "add_layer_norm");
    assert_int_equal(n[1].node.n_weight, 2);
    assert_int_equal(n[2].in[0], n[1].out[0]);
    assert_int_equal(n[3].in[0], n[2].out[0]);
    assert_int_equal(n[3].in[1], n[1].out[0]);
    assert_int_equal(n[3].in[2], n[1].out[1]);
    keel_graph_destroy(b.g);
}

static void a_failing_allocation_leaves_a_graph_that_can_be_freed(void **unused)
{
    (void)unused;
    const int64_t live = keel_memory_live();
    keel_status s = KEEL_ENOMEM;
    for (int64_t at = 0; s < 0; at++) {
        builder b = { 0 };
        keel_value x, z, v;
        must(keel_graph_create(&b.g, KEEL_FLOAT32, true));
        must(keel_graph_input(b.g, &(keel_spec){ KEEL_FLOAT32, { 3, { 9, 9, 5 } } }, &x));
        z = add(&b, "z", "tanh", NULL, &x, 1);
        v = add(&b, "n", "batch_norm", &bn, &x, 1);
        v = add(&b, "sum", "add", NULL, (keel_value[]){ v, z }, 2);
        v = add(&b, "r", "relu", &relu, &v, 1);
        v = add(&b, "pad", "zero_pad2d", &pad, &v, 1);
        v = add(&b, "pool", "max_pool2d", &pool, &v, 1);
        z = add(&b, "other", "tanh", NULL, &v, 1);
        v = add(&b, "more", "add", NULL, (keel_value[]){ v, z }, 2);
        v = add(&b, "norm", "layer_norm", &ln, &v, 1);
        z = add(&b, "high", "upsample", &high, &z, 1);
        v = add(&b, "high", "upsample", &high, &v, 1);
        v = add(&b, "1x1", "conv2d", &conv, &v, 1);
        v = add(&b, "more", "add", NULL, (keel_value[]){ v, z }, 2);
        v = add(&b, "1x1", "conv2d", &conv, &v, 1);
        v = add(&b, "mean", "average_pool2d", &pool, &v, 1);
        keel_memory_fail_at(at);
        s = keel_graph_fuse(b.g, &v, 1);
        keel_memory_fail_at(-1);
        keel_graph_destroy(b.g);
        assert_int_equal(keel_memory_live(), live);
        assert_true(at < 50);
    }
}

/* ---- training -------------------------------------------------------------------------------- */

static keel_symbol conv_bn(keel_model *m, keel_symbol x, int64_t filters, int64_t size,
                           const char *padding)
{
    x = must_call(m, "Conv2D",
                  KEEL_ARGS(KEEL_ARG_INT("filters", filters), KEEL_ARG_INT("kernel_size", size),
                            KEEL_ARG_STR("padding", padding), KEEL_ARG_BOOL("use_bias", false)),
                  x);
    return must_call(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.9)), x);
}

static keel_model *classify(keel_model *m, keel_symbol x, const char *policy)
{
    x = must_call(m, "Flatten", NULL, x);
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax")),
                  x);
    must(keel_model_outputs(m, &x, 1));
    must(keel_model_compile(
        m,
        &(keel_compile){
            KEEL_COMPILE, .optimizer = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.05)) },
            .loss = { { "sparse_categorical_crossentropy" } }, .metrics = { { "accuracy" } } }));
    if (policy) must(keel_model_set_dtype_policy(m, policy));
    return m;
}

/* Everything that is fused: padding before convolutions of both kinds and pooling, a block whose
 * shortcut is normalised, one whose shortcut is its input, a linear one, rectifiers of each kind;
 * silu; a sum that is normalised and read once more, and one that is only normalised. */
static keel_model *network(keel_dtype dtype, const char *policy)
{
    keel_model *m;
    keel_symbol x, pair[2];
    must(keel_model_create(&m, NULL, dtype, 7));
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "ZeroPadding2D", KEEL_ARGS(KEEL_ARG_INT("padding", 2)), x);
    x = conv_bn(m, x, 8, 5, "valid");
    x = must_call(m, "ReLU", NULL, x);
    x = must_call(m, "ZeroPadding2D", NULL, x);
    x = must_call(m, "MaxPooling2D",
                  KEEL_ARGS(KEEL_ARG_INT("pool_size", 3), KEEL_ARG_INT("strides", 2)), x);
    pair[0] = conv_bn(m, x, 19, 1, "same");
    pair[1] = conv_bn(m, must_call(m, "ReLU", NULL, conv_bn(m, x, 8, 3, "same")), 19, 1, "same");
    must(keel_model_call(m, "Add", NULL, pair, 2, &x));
    pair[0] = x = must_call(m, "ReLU", NULL, x);
    x = must_call(m, "ZeroPadding2D", NULL, x);
    x = must_call(m, "DepthwiseConv2D",
                  KEEL_ARGS(KEEL_ARG_INT("kernel_size", 3), KEEL_ARG_BOOL("use_bias", false)), x);
    x = must_call(m, "BatchNormalization", NULL, x);
    x = must_call(m, "ReLU", KEEL_ARGS(KEEL_ARG_FLOAT("max_value", 1)), x);
    pair[1] = conv_bn(m, x, 19, 1, "same");
    must(keel_model_call(m, "Add", NULL, pair, 2, &x));
    x = must_call(m, "Conv2D",
                  KEEL_ARGS(KEEL_ARG_INT("filters", 6), KEEL_ARG_INT("kernel_size", 2),
                            KEEL_ARG_STR("activation", "relu")),
                  x);
    x = must_call(m, "MaxPooling2D", NULL, x);
    x = conv_bn(m,
                must_call(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "silu")),
                          conv_bn(m, x, 21, 1, "same")),
                6, 1, "same");
    for (int i = 0; i < 2; i++) {
        pair[0] = x;
        pair[1] = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 6)), i ? pair[1] : x);
        must(keel_model_call(m, "Add", NULL, pair, 2, &x));
        pair[1] = must_call(m, "LayerNormalization", NULL, x);
    }
    return classify(m, pair[1], policy);
}

static keel_symbol conv_1x1(keel_model *m, keel_symbol x, int64_t filters)
{
    return must_call(m, "Conv2D",
                     KEEL_ARGS(KEEL_ARG_INT("filters", filters), KEEL_ARG_INT("kernel_size", 1)),
                     x);
}

/* Everything that changes places: shortcuts of a U-Net; places between others before a convolution;
 * means before and after one. Two rectifiers of one value, and one with views behind it. */
static keel_model *network_in_order(keel_dtype dtype, const char *policy)
{
    keel_model *m;
    keel_symbol x, pair[2];
    must(keel_model_create(&m, NULL, dtype, 7));
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "MaxPooling2D", NULL, must_call(m, "ReLU", NULL, conv_bn(m, x, 9, 3, "same")));
    pair[0] = must_call(m, "UpSampling2D", NULL, conv_bn(m, x, 7, 3, "same"));
    pair[1] = conv_1x1(m, must_call(m, "UpSampling2D", NULL, x), 7);
    must(keel_model_call(m, "Add", NULL, pair, 2, &x));
    for (int i = 0; i < 2; i++) pair[i] = conv_1x1(m, must_call(m, "ReLU", NULL, x), 20);
    must(keel_model_call(m, "Multiply", NULL, pair, 2, &x));
    x = conv_1x1(m, x, 20);
    x = must_call(m, "AveragePooling2D", KEEL_ARGS(KEEL_ARG_INT("pool_size", 2)), x);
    x = must_call(m, "ReLU", NULL, x);
    x = must_call(m, "AveragePooling2D",
                  KEEL_ARGS(KEEL_ARG_INT("pool_size", 3), KEEL_ARG_INT("strides", 1),
                            KEEL_ARG_STR("padding", "same")),
                  x);
    x = must_call(m, "ReLU", NULL, conv_1x1(m, x, 5));
    x = must_call(m, "UpSampling2D",
                  KEEL_ARGS(KEEL_ARG_INT("size", 3), KEEL_ARG_STR("interpolation", "bilinear")), x);
    x = must_call(m, "ReLU", NULL, conv_1x1(m, x, 2));
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", -1, 2)), x);
    return classify(m, must_call(m, "MaxPooling1D", NULL, x), policy);
}

/* Sums of a value with itself, as it is, rectified and upsampled. */
static keel_model *network_of_sums(keel_dtype dtype, const char *policy)
{
    keel_model *m;
    keel_symbol x, same[3];
    must(keel_model_create(&m, NULL, dtype, 7));
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "MaxPooling2D", NULL, conv_bn(m, x, 5, 3, "same"));
    for (int i = 0; i < 3; i++) same[i] = x;
    must(keel_model_call(m, "Add", NULL, same, 3, &x));
    for (int i = 0; i < 3; i++) same[i] = must_call(m, "ReLU", NULL, x);
    must(keel_model_call(m, "Average", NULL, same, 3, &x));
    x = conv_1x1(m, x, 7);
    for (int i = 0; i < 2; i++) same[i] = must_call(m, "UpSampling2D", NULL, x);
    must(keel_model_call(m, "Add", NULL, same, 2, &x));
    return classify(m, must_call(m, "BatchNormalization", NULL, x), policy);
}

typedef struct way {
    const char *devices;
    bool unfused, reference;
    const char *policy;                                      /* NULL: none */
    bool one_step;                                           /* else three epochs */
    keel_model *(*of)(keel_dtype dtype, const char *policy); /* NULL: network */
} way;

static keel_model *train(keel_dtype dtype, const way *w, keel_history *h)
{
    static float x[ROWS * SIDE * SIDE * 3], y[ROWS];
    uint32_t state = 5;
    keel_strategy *s;
    keel_dataset *d;
    for (int i = 0; i < ROWS * SIDE * SIDE * 3; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    for (int i = 0; i < ROWS; i++) y[i] = (float)(i * 7 % CLASSES);
    const int64_t rows = w->one_step ? BATCH : ROWS;
    const keel_tensor images = { KEEL_FLOAT32, { 4, { rows, SIDE, SIDE, 3 } }, x };
    const keel_tensor labels = { KEEL_FLOAT32, { 1, { rows } }, y };
    must(keel_strategy_create(&s, w->devices));
    must(keel_dataset_from_arrays(&d, &images, &labels, NULL));
    keel_model *m = (w->of ? w->of : network)(dtype, w->policy);
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH,
                                       .epochs = w->one_step ? 1 : 3, .validation = d,
                                       .reference_kernels = w->reference, .unfused = w->unfused },
                  h));
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    return m;
}

static double element(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((const double *)t->data)[i]
                                    : (double)((const float *)t->data)[i];
}

static void near(const keel_model *a, const keel_model *b, double limit, const char *what)
{
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        const char *name = keel_model_weight_name(a, i);
        keel_tensor u, v;
        int64_t n = 1;
        must(keel_model_get_weight(a, name, &u));
        must(keel_model_get_weight(b, name, &v));
        for (int k = 0; k < u.shape.rank; k++) n *= u.shape.dim[k];
        for (int64_t k = 0; k < n; k++)
            if (!(fabs(element(&u, k) - element(&v, k)) <= limit))
                fail_msg("%s: %s[%lld] is %.9g fused and %.9g not", what, name, (long long)k,
                         element(&u, k), element(&v, k));
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
}

static void fused_training_gives_the_weights_of_unfused_training(void **unused)
{
    (void)unused;
    static const struct {
        keel_dtype dtype;
        way way;
        double limit;
    } cases[] = {
        { KEEL_FLOAT32, { "cpu:0", false, false }, 0 },
        { KEEL_FLOAT32, { "cpu:0-1", false, false }, 0 },
        { KEEL_FLOAT32, { "cpu:0-2", false, false }, 0 },
        { KEEL_FLOAT32, { "cpu:0", false, true }, 0 },
        { KEEL_FLOAT64, { "cpu:0-1", false, false }, 0 },
        { KEEL_FLOAT32, { "cpu:0", .of = network_in_order }, 2e-6 },
        { KEEL_FLOAT32, { "cpu:0-2", .of = network_in_order }, 2e-6 },
        { KEEL_FLOAT32, { "cpu:0", .of = network_in_order, .reference = true }, 2e-6 },
        { KEEL_FLOAT64, { "cpu:0-1", .of = network_in_order }, 1e-14 },
        { KEEL_FLOAT32, { "cpu:0", .of = network_of_sums }, 0 },
        { KEEL_FLOAT64, { "cpu:0-2", .of = network_of_sums }, 0 },
        { KEEL_FLOAT64, { "cpu:0-2", .of = network_of_sums, .reference = true }, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        way other = cases[i].way;
        keel_history h = { 0 }, g = { 0 };
        char what[64];
        other.unfused = true;
        snprintf(what, sizeof what, "case %d, %s", (int)i, other.devices);
        keel_model *a = train(cases[i].dtype, &cases[i].way, &h);
        keel_model *b = train(cases[i].dtype, &other, &g);
        near(a, b, cases[i].limit, what);
        assert_int_equal(h.count, g.count);
        for (int64_t k = 0; k < h.epochs * h.count; k++) /* loss and metrics, validation too */
            assert_true(fabs(h.value[k] - g.value[k]) <= 1e-6 * fabs(g.value[k]));
        assert_true(h.memory_planned < g.memory_planned);
        keel_history_free(&h);
        keel_history_free(&g);
        keel_model_destroy(a);
        keel_model_destroy(b);
    }
}

/* The distance between two models: the root of the sum of squares over all their weights. */
static double apart(const keel_model *a, const keel_model *b)
{
    double sum = 0;
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        const char *name = keel_model_weight_name(a, i);
        keel_tensor u, v;
        int64_t n = 1;
        must(keel_model_get_weight(a, name, &u));
        must(keel_model_get_weight(b, name, &v));
        for (int k = 0; k < u.shape.rank; k++) n *= u.shape.dim[k];
        for (int64_t k = 0; k < n; k++) sum += pow(element(&u, k) - element(&v, k), 2);
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
    return sqrt(sum);
}

/* In bfloat16 bits differ, as what is fused is rounded less often. After one step the network has
 * moved by 1.7, fused and unfused to within 0.29 of where float32 takes it, and the loss is off by
 * 1.7 %; a rectifier or shortcut that lost its gradient is off by most of the way. */
static void fused_training_in_bfloat16_strays_no_further_than_unfused(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0", "cpu:0-2" };
    for (int i = 0; i < 8; i++) {
        way w = { .devices = devices[i / 2 % 2],
                  .reference = i % 2,
                  .one_step = true,
                  .of = i / 4 ? network_in_order : network };
        keel_model *begin = w.of(KEEL_FLOAT32, NULL);
        keel_history h[3] = { 0 };
        keel_model *exact = train(KEEL_FLOAT32, &w, &h[0]);
        w.policy = "mixed_bfloat16";
        keel_model *fused = train(KEEL_FLOAT32, &w, &h[1]);
        w.unfused = true;
        keel_model *plain = train(KEEL_FLOAT32, &w, &h[2]);
        if (!(apart(fused, exact) <= 1.2 * apart(plain, exact)))
            fail_msg("case %d: fused is %.3g from float32, unfused %.3g", i, apart(fused, exact),
                     apart(plain, exact));
        assert_true(apart(plain, exact) < 0.3 * apart(exact, begin));
        assert_true(apart(fused, plain) > 0);
        for (int k = 1; k < 3; k++)
            assert_true(fabs(h[k].value[0] - h[0].value[0]) < 0.02 * h[0].value[0]);
        assert_true(h[1].memory_planned < h[2].memory_planned);
        for (int k = 0; k < 3; k++) keel_history_free(&h[k]);
        keel_model_destroy(exact);
        keel_model_destroy(fused);
        keel_model_destroy(plain);
        keel_model_destroy(begin);
    }
}

static void fused_weights_do_not_depend_on_the_number_of_lanes(void **unused)
{
    (void)unused;
    static const char *const devices[] = { "cpu:0-1", "cpu:0-2", "cpu:0-6", "cpu:0-7" };
    for (int i = 0; i < 4; i++) {
        way w = { .devices = "cpu:0",
                  .policy = i % 2 ? "mixed_bfloat16" : NULL,
                  .of = i / 2 ? network_in_order : network };
        keel_model *one = train(KEEL_FLOAT32, &w, NULL);
        for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
            w.devices = devices[k];
            keel_model *many = train(KEEL_FLOAT32, &w, NULL);
            near(many, one, 0, devices[k]);
            keel_model_destroy(many);
        }
        keel_model_destroy(one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_of_a_graph),
        cmocka_unit_test(what_is_upsampled_is_added_before),
        cmocka_unit_test(places_of_volumes_are_convolved_before_they_are_upsampled),
        cmocka_unit_test(of_what_does_the_same_one_is_left),
        cmocka_unit_test(two_readers_that_do_the_same_are_one_for_fusing),
        cmocka_unit_test(a_sum_that_goes_before_may_be_fused),
        cmocka_unit_test(what_is_added_must_be_made_before_the_batch_norm),
        cmocka_unit_test(the_sum_may_be_read_before_the_layer_norm_and_after_it),
        cmocka_unit_test(a_failing_allocation_leaves_a_graph_that_can_be_freed),
        cmocka_unit_test(fused_training_gives_the_weights_of_unfused_training),
        cmocka_unit_test(fused_training_in_bfloat16_strays_no_further_than_unfused),
        cmocka_unit_test(fused_weights_do_not_depend_on_the_number_of_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
