/* See fuse_impl.h. A convolution of 1x1 has the same weights at each place; upsampling and average
 * pooling make each place of some others, do the same to each channel, and leave a constant as it
 * is. So they can change places. Where places are repeated, results have the same bits then, and
 * gradients are sums in another order; means and places between others are rounded elsewhere.
 *
 * The shortcuts of a U-Net are upsampled before such a convolution, and added to what is upsampled,
 * too: both is done on a quarter of the places. DenseNet takes means of what such a one has made,
 * and Inception means over all channels, of which it then makes few. */
#include "graph/fuse_impl.h"
#include "ops/all.h"
#include "ops/args.h"

/* Whether each output of the convolution is made of one place of its own. */
static bool reads_a_place(const keel_graph_node *n)
{
    const keel_conv2d_args *flat = n->args;
    const keel_conv3d_args *deep = n->args;
    const bool volume = n->node.op == &keel_op_conv3d;
    const int64_t *strides = volume ? deep->strides : flat->strides;
    const int64_t *pad = volume ? deep->pad : flat->pad;
    for (int i = 0; i < (volume ? 3 : 2); i++)
        if (n->weight_spec[0].shape.dim[i] != 1 || strides[i] != 1 || pad[2 * i] || pad[2 * i + 1])
            return false;
    return (volume ? deep->groups : flat->groups) == 1;
}

/* Whether it stores the type that it reads: neither of two such nodes converts for the other. */
static bool keeps_type(const keel_graph_node *n)
{
    return n->node.in[0].dtype == n->node.out[0].dtype;
}

/* Whether it upsamples the places of an image, and not its channels. */
static bool upsamples(const keel_graph_node *n)
{
    const keel_upsample_args *a = n->args;
    const int rank = n->node.in[0].shape.rank;
    return keeps_type(n) && (a->axis < 0 ? a->axis + rank : a->axis) < rank - 1;
}

static bool has_strides(const keel_graph_node *pool)
{
    const keel_pool2d_args *a = pool->args;
    return a->strides[0] > 1 || a->strides[1] > 1;
}

/* Places of nodes are changed, and not their values: v, made by the first, is made by the second
 * then, and read by the first. */
static void exchange(keel_graph_node *first, keel_graph_node *second)
{
    const keel_graph_node was = *first;
    const keel_value v = first->out[0], end = second->out[0];
    *first = *second;
    *second = was;
    first->out[0] = v;
    second->in[0] = v;
    second->out[0] = end;
}

/* After an exchange, when the inputs of the first are set. */
static keel_status infer_both(keel_graph *g, keel_graph_node *first, keel_graph_node *second)
{
    KEEL_TRY(keel_node_infer(&first->node));
    g->value[first->out[0]].spec = second->in_spec[0] = first->node.out[0];
    return keel_node_infer(&second->node);
}

/* *n reads what m makes, and nobody else does. */
static keel_status go_before(const keel_fuser *f, keel_graph_node **n, keel_graph_node *m)
{
    const keel_value from = m->in[0];
    const keel_spec spec = m->in_spec[0];
    exchange(m, *n);
    m->in[0] = from;
    m->in_spec[0] = spec;
    KEEL_TRY(infer_both(f->g, m, *n));
    *n = m;
    return KEEL_OK;
}

/* What the convolution, of 1x1, should go before; NULL: nothing. */
static keel_graph_node *goes_before(const keel_fuser *f, const keel_graph_node *conv)
{
    const keel_shape *kernel = &conv->weight_spec[0].shape;
    keel_graph_node *m = keel_only_maker(f, conv, 0, &keel_op_upsample);
    if (m) return upsamples(m) ? m : NULL;
    if (kernel->dim[kernel->rank - 2] <= kernel->dim[kernel->rank - 1]) return NULL;
    m = keel_only_maker(f, conv, 0, &keel_op_average_pool2d);
    return m && !has_strides(m) && keeps_type(m) ? m : NULL;
}

keel_status keel_order_conv(const keel_fuser *f, keel_graph_node **n)
{
    keel_graph_node *m;
    while (reads_a_place(*n) && keeps_type(*n) && (m = goes_before(f, *n)))
        KEEL_TRY(go_before(f, n, m));
    return KEEL_OK;
}

keel_status keel_order_pool(const keel_fuser *f, keel_graph_node **n)
{
    keel_graph_node *m;
    while (has_strides(*n) && keeps_type(*n) && (m = keel_only_maker(f, *n, 0, &keel_op_conv2d)) &&
           reads_a_place(m) && keeps_type(m))
        KEEL_TRY(go_before(f, n, m));
    return KEEL_OK;
}

static bool alike(const keel_graph_node *a, const keel_graph_node *b)
{
    const keel_upsample_args *x = a->args, *y = b->args;
    return x->axis == y->axis && x->factor == y->factor && x->between == y->between &&
           keel_shape_equal(&a->in_spec[0].shape, &b->in_spec[0].shape) &&
           a->in_spec[0].dtype == b->in_spec[0].dtype;
}

keel_status keel_order_add(keel_fuser *f, keel_graph_node **n)
{
    while ((*n)->node.n_in == 2) {
        keel_graph_node *a = keel_only_maker(f, *n, 0, &keel_op_upsample);
        keel_graph_node *b = keel_only_maker(f, *n, 1, &keel_op_upsample);
        if (!a || !b || !alike(a, b) || !upsamples(a) || !keeps_type(*n)) break;
        if (a->in[0] == b->in[0]) break; /* a node's inputs are distinct */
        keel_graph_node *const late = a > b ? a : b, *const other = a > b ? b : a;
        const keel_value from[] = { a->in[0], b->in[0] };
        const keel_spec spec = a->in_spec[0];
        KEEL_TRY(keel_add_layer(late, a->node.layer, b->node.layer));
        exchange(late, *n);
        for (int k = 0; k < 2; k++) {
            late->in[k] = from[k];
            late->in_spec[k] = spec;
        }
        f->dead[other - f->g->node] = true;
        KEEL_TRY(infer_both(f->g, late, *n));
        *n = late;
    }
    return KEEL_OK;
}
