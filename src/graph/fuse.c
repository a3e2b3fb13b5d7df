/* See fuse.h. One walk over the nodes in their order. Either a node is taken into the node before
 * it, and its output becomes another name of that node's output; or a node takes over the work of
 * the node before it, and reads its input. Nodes without work are then dropped, and values are
 * numbered anew. */
#include "graph/fuse.h"
#include "graph/fuse_impl.h"
#include "base/memory.h"
#include "ops/all.h"
#include "ops/args.h"
#include <stdio.h>
#include <string.h>

static bool is(const keel_graph_node *n, const keel_op *op)
{
    return n->node.op == op;
}

keel_graph_node *keel_only_maker(const keel_fuser *f, const keel_graph_node *n, int k,
                                 const keel_op *op)
{
    const keel_value v = n->in[k];
    const int maker = f->g->value[v].node;
    if (maker < 0 || f->uses[v] != 1) return NULL;
    keel_graph_node *m = &f->g->node[maker];
    return is(m, op) && m->node.held == n->node.held ? m : NULL;
}

/* Whether the node is max(x, 0), or min(max(x, 0), *max). *max is 0 if there is no limit. */
static bool is_relu(const keel_graph_node *n, double *max)
{
    *max = is(n, &keel_op_relu6) ? 6 : 0;
    if (is(n, &keel_op_relu6)) return true;
    if (!is(n, &keel_op_relu)) return false;
    const keel_relu_args *a = n->node.args;
    if (a->capped) *max = a->max_value;
    return a->negative_slope == 0 && a->threshold == 0 && !(a->capped && !(a->max_value > 0));
}

/* Whether no element of a value is below 0. */
static bool not_negative(const keel_fuser *f, keel_value v)
{
    const int maker = f->g->value[v].node;
    double ignored;
    if (maker < 0) return false;
    const keel_graph_node *n = &f->g->node[maker];
    return is_relu(n, &ignored) ||
           (is(n, &keel_op_batch_norm) && ((const keel_batch_norm_args *)n->args)->relu);
}

keel_status keel_add_layer(keel_graph_node *to, const char *first, const char *second)
{
    if (!strcmp(first, second)) return KEEL_OK;
    const size_t n = strlen(first) + strlen(second) + 4;
    char *both = keel_calloc(n, 1);
    if (!both) return KEEL_ENOMEM;
    snprintf(both, n, "%s + %s", first, second);
    keel_free(to->layer);
    to->node.layer = to->layer = both;
    return KEEL_OK;
}

/* The work of `later` is now done by `n`, which is inferred again with its new arguments. */
static keel_status take_in(keel_fuser *f, keel_graph_node *n, const keel_graph_node *later)
{
    KEEL_TRY(keel_add_layer(n, n->node.layer, later->node.layer));
    f->dead[later - f->g->node] = true;
    f->name[later->out[0]] = n->out[0];
    f->uses[n->out[0]] = f->uses[later->out[0]];
    return keel_node_infer(&n->node);
}

/* `n` does the work of `earlier`, and reads its input. */
static keel_status take_over(keel_fuser *f, keel_graph_node *n, const keel_graph_node *earlier)
{
    KEEL_TRY(keel_add_layer(n, earlier->node.layer, n->node.layer));
    f->dead[earlier - f->g->node] = true;
    n->in[0] = earlier->in[0];
    n->in_spec[0] = earlier->in_spec[0];
    return keel_node_infer(&n->node);
}

/* The batch_norm that makes input k of node n, if only n reads it and it has no activation yet;
 * else NULL. */
static keel_graph_node *plain_norm(const keel_fuser *f, const keel_graph_node *n, int k)
{
    keel_graph_node *bn = keel_only_maker(f, n, k, &keel_op_batch_norm);
    const keel_batch_norm_args *a = bn ? bn->args : NULL;
    return bn && !a->relu && !a->silu ? bn : NULL;
}

/* batch_norm -> relu */
static keel_status fuse_relu(keel_fuser *f, keel_graph_node *n)
{
    double max;
    keel_graph_node *bn = plain_norm(f, n, 0);
    if (!bn || !is_relu(n, &max)) return KEEL_OK;
    keel_batch_norm_args *a = bn->args;
    a->relu = true;
    a->max_value = max;
    return take_in(f, bn, n);
}

/* batch_norm -> silu */
static keel_status fuse_silu(keel_fuser *f, const keel_graph_node *n)
{
    keel_graph_node *bn = plain_norm(f, n, 0);
    if (!bn || bn->node.n_in > 1) return KEEL_OK;
    ((keel_batch_norm_args *)bn->args)->silu = true;
    return take_in(f, bn, n);
}

/* batch_norm -> add, if the other input is made before the batch_norm runs */
static keel_status fuse_add(keel_fuser *f, keel_graph_node *n)
{
    for (int k = 0; k < 2 && n->node.n_in == 2; k++) {
        keel_graph_node *bn = plain_norm(f, n, k);
        const keel_value other = n->in[1 - k];
        if (!bn || bn->node.n_in > 1 || f->g->value[other].node > bn - f->g->node ||
            other == bn->in[0])
            continue;
        keel_value *in = keel_calloc(2, sizeof *in);
        keel_spec *spec = keel_calloc(2, sizeof *spec);
        if (!in || !spec) {
            keel_free(in);
            keel_free(spec);
            return KEEL_ENOMEM;
        }
        in[0] = bn->in[0];
        in[1] = other;
        spec[0] = bn->node.in[0];
        spec[1] = n->node.in[1 - k];
        keel_free(bn->in);
        keel_free(bn->in_spec);
        bn->in = in;
        bn->node.in = bn->in_spec = spec;
        bn->node.n_in = 2;
        return take_in(f, bn, n);
    }
    return KEEL_OK;
}

/* zero_pad2d -> conv2d; and, after a relu, zero_pad2d -> max_pool2d, since the pooling's own
 * padding never wins. Where a window had no positive pixel, a padded zero could win, and no pixel
 * got a gradient. Now a pixel gets it, and the relu stops it. */
static keel_status fuse_pad(keel_fuser *f, keel_graph_node *n)
{
    const bool pool = is(n, &keel_op_max_pool2d);
    const keel_graph_node *pad = keel_only_maker(f, n, 0, &keel_op_zero_pad2d);
    if (!pad || (pool && !not_negative(f, pad->in[0]))) return KEEL_OK;
    const int64_t *more = ((const keel_zero_pad2d_args *)pad->args)->pad;
    keel_pool2d_args *p = pool ? n->args : NULL;
    int64_t *const to = pool ? p->pad : ((keel_conv2d_args *)n->args)->pad;
    for (int i = 0; i < 4; i++)
        if (pool && to[i] + more[i] >= p->pool[i / 2]) return KEEL_OK;
    for (int i = 0; i < 4; i++) to[i] += more[i];
    return take_over(f, n, pad);
}

/* relu -> max_pool2d, also with views of other dims between them, as pooling in one dim has */
static keel_status fuse_pool(keel_fuser *f, keel_graph_node *n)
{
    double max = 0;
    keel_graph_node *reader = n, *view;
    while ((view = keel_only_maker(f, reader, 0, &keel_op_reshape))) reader = view;
    const keel_graph_node *relu = keel_only_maker(f, reader, 0, &keel_op_relu);
    if (!relu || !is_relu(relu, &max) || max > 0) return KEEL_OK;
    if (relu->in_spec[0].dtype != relu->node.out[0].dtype) return KEEL_OK;
    ((keel_pool2d_args *)n->args)->relu = true;
    KEEL_TRY(keel_add_layer(n, relu->node.layer, n->node.layer));
    f->dead[relu - f->g->node] = true;
    reader->in[0] = relu->in[0];
    return reader == n ? keel_node_infer(&n->node) : KEEL_OK;
}

/* add -> layer_norm: the add becomes add_layer_norm, which has both outputs. It runs where the add
 * ran, so whoever else reads the sum may do so before the layer_norm. */
static keel_status fuse_norm(keel_fuser *f, keel_graph_node *n)
{
    const keel_value sum = n->in[0], y = n->out[0];
    const int maker = f->g->value[sum].node;
    if (maker < 0) return KEEL_OK;
    keel_graph_node *a = &f->g->node[maker];
    if (!is(a, &keel_op_add) || a->node.n_in != 2 || a->node.held != n->node.held) return KEEL_OK;
    keel_value *both = keel_calloc(2, sizeof *both);
    if (!both) return KEEL_ENOMEM;
    both[0] = sum;
    both[1] = y;
    keel_free(a->out);
    a->out = both;
    KEEL_TRY(keel_add_layer(a, a->node.layer, n->node.layer));
    void *const args = a->args; /* n has these from now on, and is freed with them */
    keel_spec *const weight_spec = a->weight_spec;
    keel_variable *const weight = a->weight;
    a->node.op = &keel_op_add_layer_norm;
    a->node.args = a->args = n->args;
    a->node.weight = a->weight_spec = n->weight_spec;
    a->node.n_weight = n->node.n_weight;
    a->weight = n->weight;
    a->turn = n->turn;
    n->node.args = n->args = args;
    n->node.weight = n->weight_spec = weight_spec;
    n->node.n_weight = 0;
    n->weight = weight;
    f->g->value[y].node = maker;
    f->g->value[y].index = 1;
    f->dead[n - f->g->node] = true;
    f->uses[sum]--;
    return keel_node_infer(&a->node);
}

static keel_status fuse_node(keel_fuser *f, keel_graph_node *n)
{
    for (int k = 0; k < n->node.n_in; k++) n->in[k] = f->name[n->in[k]];
    if (is(n, &keel_op_relu) || is(n, &keel_op_relu6)) return fuse_relu(f, n);
    if (is(n, &keel_op_silu)) return fuse_silu(f, n);
    if (is(n, &keel_op_add)) {
        KEEL_TRY(keel_order_add(f, &n));
        return fuse_add(f, n);
    }
    if (is(n, &keel_op_layer_norm)) return fuse_norm(f, n);
    if (is(n, &keel_op_conv2d)) {
        KEEL_TRY(fuse_pad(f, n));
        return keel_order_conv(f, &n);
    }
    if (is(n, &keel_op_conv3d)) return keel_order_conv(f, &n);
    if (is(n, &keel_op_depthwise_conv2d)) return fuse_pad(f, n);
    if (is(n, &keel_op_average_pool2d)) return keel_order_pool(f, &n);
    if (!is(n, &keel_op_max_pool2d)) return KEEL_OK;
    KEEL_TRY(fuse_pad(f, n));
    return fuse_pool(f, n);
}

/* Drops dead nodes and the values that they made. */
static void drop(keel_fuser *f, keel_value *keep, int n_keep)
{
    keel_graph *g = f->g;
    int n_value = 0, n_node = 0;
    keel_value *now = f->uses; /* no longer needed */
    for (int v = 0; v < g->n_value; v++) {
        const int node = g->value[v].node;
        if (node >= 0 && f->dead[node]) continue;
        now[v] = n_value;
        g->value[n_value++] = g->value[v];
    }
    for (int i = 0; i < n_keep; i++) keep[i] = now[f->name[keep[i]]];
    for (int i = 0; i < g->n_node; i++) {
        keel_graph_node *n = &g->node[i];
        if (f->dead[i]) {
            keel_graph_node_free(n);
            continue;
        }
        for (int k = 0; k < n->node.n_in; k++) n->in[k] = now[f->name[n->in[k]]];
        for (int k = 0; k < n->node.n_out; k++) {
            n->out[k] = now[n->out[k]];
            g->value[n->out[k]].node = n_node;
        }
        g->node[n_node++] = *n;
    }
    g->n_value = n_value;
    g->n_node = n_node;
}

keel_status keel_graph_fuse(keel_graph *g, keel_value *keep, int n_keep)
{
    keel_status s = KEEL_OK;
    keel_fuser f = { .g = g,
                     .uses = keel_calloc((size_t)g->n_value, sizeof(int)),
                     .name = keel_calloc((size_t)g->n_value, sizeof(keel_value)),
                     .dead = keel_calloc((size_t)g->n_node, sizeof(bool)) };
    if (!f.uses || !f.name || !f.dead) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int v = 0; v < g->n_value; v++) f.name[v] = v;
    for (int i = 0; i < n_keep; i++) f.uses[keep[i]]++;
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->node[i].node.n_in; k++) f.uses[g->node[i].in[k]]++;
    s = keel_fuse_same(&f, keep, n_keep);
    for (int i = 0; i < g->n_node && s >= 0; i++)
        if (!f.dead[i]) s = fuse_node(&f, &g->node[i]);
    if (s >= 0) drop(&f, keep, n_keep);
out:
    keel_free(f.uses);
    keel_free(f.name);
    keel_free(f.dead);
    return s;
}
