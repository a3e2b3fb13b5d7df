/* Building a graph: values and nodes in the order in which they are emitted. A node owns everything
 * it points to (arguments, input specs, the name of its layer), so a graph outlives what it was
 * built from. */
#include "graph/graph.h"
#include "base/memory.h"
#include "ops/all.h"
#include "ops/args.h"
#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY = 16, VALUES_MAX = 1 << 24 };

keel_status keel_graph_create(keel_graph **out, keel_dtype real, bool training)
{
    if (!keel_dtype_is_real(real))
        return keel_fail(KEEL_EUNSUP, "a graph computes in float32 or float64, not in %s",
                         keel_dtype_name(real));
    keel_graph *g = keel_calloc(1, sizeof *g);
    if (!g) return KEEL_ENOMEM;
    g->real = g->held = real;
    g->training = g->backward = training;
    g->batch = -1;
    *out = g;
    return KEEL_OK;
}

void keel_graph_node_free(keel_graph_node *n)
{
    keel_free(n->args);
    keel_free(n->layer);
    keel_free(n->in_spec);
    keel_free(n->weight_spec);
    keel_node_clear(&n->node);
    keel_free(n->in);
    keel_free(n->out);
    keel_free(n->weight);
}

void keel_graph_destroy(keel_graph *g)
{
    if (!g) return;
    for (int i = 0; i < g->n_node; i++) keel_graph_node_free(&g->node[i]);
    keel_free(g->node);
    keel_free(g->value);
    keel_free(g->host);
    keel_free(g->spectral);
    for (int i = 0; i < g->n_carried; i++) keel_free(g->carried[i].name);
    keel_free(g->carried);
    keel_free(g->wanted);
    keel_free(g);
}

/* Makes room for one more element of `*array`, whose capacity is the next power of two of its
 * count. */
static keel_status reserve(void **array, int count, size_t size)
{
    if (count >= VALUES_MAX) return keel_fail(KEEL_EUNSUP, "a graph of more than %d values", count);
    if (count && (count < FIRST_CAPACITY || (count & (count - 1)))) return KEEL_OK;
    const size_t capacity = count ? (size_t)count * 2 : FIRST_CAPACITY;
    void *p = keel_grow(*array, capacity, size);
    if (!p) return KEEL_ENOMEM;
    *array = p;
    return KEEL_OK;
}

static keel_status add_value(keel_graph *g, const keel_spec *spec, int node, int index,
                             keel_value *out)
{
    KEEL_TRY(reserve((void **)&g->value, g->n_value, sizeof *g->value));
    g->value[g->n_value] = (keel_graph_value){ .spec = *spec, .node = node, .index = index };
    *out = g->n_value++;
    return KEEL_OK;
}

keel_status keel_graph_input(keel_graph *g, const keel_spec *spec, keel_value *out)
{
    KEEL_TRY(keel_shape_check(&spec->shape, keel_dtype_size(spec->dtype)));
    KEEL_TRY(add_value(g, spec, -1, g->n_input, out));
    g->n_input++;
    return KEEL_OK;
}

keel_status keel_graph_want(keel_graph *g, int input)
{
    KEEL_TRY(reserve((void **)&g->wanted, g->n_wanted, sizeof *g->wanted));
    g->wanted[g->n_wanted++] = input;
    return KEEL_OK;
}

keel_status keel_graph_normalize(keel_graph *g, const keel_graph_spectral *s)
{
    if (g->repeats)
        return keel_fail(KEEL_EUNSUP, "a call that is made again: its weight is divided by each "
                                      "call in training, so it takes only one");
    for (int i = 0; i < g->n_spectral; i++)
        if (g->spectral[i].weight == s->weight)
            return keel_fail(KEEL_EUNSUP, "called twice in training: Keras would divide the weight "
                                          "again between the calls");
    KEEL_TRY(reserve((void **)&g->spectral, g->n_spectral, sizeof *g->spectral));
    g->spectral[g->n_spectral++] = *s;
    return KEEL_OK;
}

keel_value keel_graph_input_value(const keel_graph *g, int input)
{
    keel_value v = 0;
    while (g->value[v].node >= 0 || g->value[v].index != input) v++;
    return v;
}

/* The value before it was given another shape, and whole numbers before they were cast for that: a
 * look-up reads elements one by one, in the type in which they are read. */
static const keel_graph_value *before_shaped(const keel_graph *g, keel_value v)
{
    while (g->value[v].node >= 0) {
        const keel_graph_node *n = &g->node[g->value[v].node];
        const bool cast = n->node.op == &keel_op_cast && !keel_dtype_is_real(n->in_spec[0].dtype);
        if (!cast && n->node.op != &keel_op_reshape) break;
        v = n->in[0];
    }
    return &g->value[v];
}

keel_status keel_graph_host_input(keel_graph *g, const keel_value *of, int n_of, keel_host_op op,
                                  const void *args, const keel_spec *spec, keel_value *out)
{
    keel_graph_host made = { .n_of = n_of, .op = op, .args = args };
    if (n_of > KEEL_HOST_INS_MAX)
        return keel_fail(KEEL_EUNSUP, "it is called on %d inputs; at most %d are supported", n_of,
                         KEEL_HOST_INS_MAX);
    for (int i = 0; i < n_of; i++) {
        const keel_graph_value *from = before_shaped(g, of[i]);
        if (from->node >= 0)
            return keel_fail(KEEL_EUNSUP, "it must be called on an input of the model itself, at "
                                          "most in another shape: what it does is done where rows "
                                          "are read");
        made.of[i] = from->index;
    }
    for (int i = 0; i < g->n_host; i++) {
        const keel_graph_host *h = &g->host[i];
        const keel_value had = keel_graph_input_value(g, h->input);
        if (h->op != op || h->args != args || h->n_of != n_of ||
            memcmp(h->of, made.of, sizeof made.of) ||
            !keel_shape_equal(&keel_graph_spec(g, had)->shape, &spec->shape))
            continue;
        *out = had;
        return KEEL_OK;
    }
    KEEL_TRY(reserve((void **)&g->host, g->n_host, sizeof *g->host));
    KEEL_TRY(keel_graph_input(g, spec, out));
    made.input = g->n_input - 1;
    g->host[g->n_host++] = made;
    return KEEL_OK;
}

keel_status keel_graph_carry(keel_graph *g, const keel_shape *shape, int number, keel_value *begin)
{
    const keel_spec spec = { g->real, *shape };
    char name[512];
    snprintf(name, sizeof name, "%s/state_%d", g->layer ? g->layer : "", number);
    if (g->batch < 0)
        return keel_fail(KEEL_EUNSUP, "stateful: it keeps a state for each row of the batch, so "
                                      "the Input needs a batch size (batch_shape)");
    KEEL_TRY(reserve((void **)&g->carried, g->n_carried, sizeof *g->carried));
    KEEL_TRY(keel_graph_input(g, &spec, begin));
    keel_graph_carried *c = &g->carried[g->n_carried];
    *c = (keel_graph_carried){ .name = keel_strdup(name), .input = g->n_input - 1, .end = -1 };
    if (!c->name) return KEEL_ENOMEM;
    g->n_carried++;
    return KEEL_OK;
}

keel_status keel_graph_carry_end(keel_graph *g, keel_value begin, keel_value end)
{
    for (int i = 0; i < g->n_carried; i++)
        if (g->value[begin].node < 0 && g->carried[i].input == g->value[begin].index)
            return keel_graph_cast(g, end, g->real, &g->carried[i].end);
    return keel_fail(KEEL_EARG, "the value does not go on from step to step");
}

const keel_spec *keel_graph_spec(const keel_graph *g, keel_value v)
{
    return v >= 0 && v < g->n_value ? &g->value[v].spec : NULL;
}

/* Gives the node its own copies of what it was made from. On failure the caller frees them. */
static keel_status fill(const keel_graph *g, keel_graph_node *n, const keel_node_parts *parts)
{
    const keel_op *op = parts->op;
    const size_t args_size =
        parts->args && op->args_bytes ? op->args_bytes(parts->args) : op->args_size;
    const size_t n_in = (size_t)parts->n_in, n_weight = (size_t)parts->n_weight;
    n->args = keel_calloc(1, args_size);
    n->layer = keel_strdup(g->layer ? g->layer : "");
    n->in_spec = keel_calloc(n_in, sizeof *n->in_spec);
    n->weight_spec = keel_calloc(n_weight, sizeof *n->weight_spec);
    n->node = (keel_node){ .op = parts->op,
                           .args = n->args,
                           .layer = n->layer,
                           .training = g->training,
                           .backward = g->backward,
                           .real = g->real,
                           .held = g->held,
                           .stream = g->stream,
                           .n_in = parts->n_in,
                           .in = n->in_spec,
                           .n_weight = parts->n_weight,
                           .weight = n->weight_spec };
    n->turn = g->turn;
    n->repeats = g->repeats;
    n->in = keel_calloc(n_in, sizeof *n->in);
    n->weight = keel_calloc(n_weight, sizeof *n->weight);
    if (!n->args || !n->layer || !n->in_spec || !n->weight_spec || !n->in || !n->weight)
        return KEEL_ENOMEM;
    if (parts->args && args_size) memcpy(n->args, parts->args, args_size);
    for (int i = 0; i < parts->n_in; i++) {
        const keel_spec *s = keel_graph_spec(g, parts->in[i]);
        if (!s) return keel_fail(KEEL_EARG, "%s: input %d is no value", parts->op->name, i);
        const bool texts = s->dtype == KEEL_STRING;
        if (texts && op != &keel_op_reshape)
            return keel_fail(KEEL_EARG, "its input is of texts, which only a layer that looks them "
                                        "up takes (StringLookup), or one that changes their shape "
                                        "(Reshape, expand_dims)");
        n->in_spec[i] = (keel_spec){ texts ? g->held : s->dtype, s->shape };
        n->in[i] = parts->in[i];
    }
    for (int i = 0; i < parts->n_weight; i++) {
        n->weight_spec[i] = parts->weight_spec[i];
        n->weight[i] = parts->weight[i];
    }
    return KEEL_OK;
}

/* Where gradients flow, all inputs of a node are distinct values: if a value comes a second time,
 * it comes as a view of itself. The view's gradient has its own buffer, and is added to the value's
 * gradient. So no op has to know which of its gradients share memory, or the order in which it
 * writes them. */
static keel_status part_twins(keel_graph *g, const keel_node_parts *parts, keel_value *in)
{
    const keel_dtype before = g->held;
    keel_status s = KEEL_OK;
    for (int i = 0; i < parts->n_in; i++) in[i] = parts->in[i];
    for (int i = 1; g->backward && i < parts->n_in && s >= 0; i++) {
        const keel_spec *spec = keel_graph_spec(g, in[i]);
        bool twin = false;
        for (int k = 0; k < i; k++) twin = twin || parts->in[k] == parts->in[i];
        if (!twin || !spec || !keel_dtype_flows(spec->dtype)) continue;
        const keel_reshape_args same = { .shape = spec->shape };
        const keel_value whole = in[i];
        g->held = spec->dtype;
        s = keel_graph_add(
            g, &(keel_node_parts){ .op = &keel_op_reshape, .args = &same, .n_in = 1, .in = &whole },
            &in[i], 1);
        g->held = before;
    }
    return s;
}

static keel_status check_outputs(const keel_node *n, int n_out)
{
    if (n->n_out != n_out)
        return keel_fail(KEEL_EARG, "%s: has %d outputs, not %d", n->op->name, n->n_out, n_out);
    for (int i = 0; i < n->n_out; i++)
        KEEL_TRY(keel_shape_check(&n->out[i].shape, keel_dtype_size(n->out[i].dtype)));
    return KEEL_OK;
}

keel_status keel_graph_add(keel_graph *g, const keel_node_parts *parts, keel_value *out, int n_out)
{
    keel_status s = KEEL_OK;
    keel_graph_node n = { 0 };
    int n_value = g->n_value;
    if (parts->n_in < 0 || parts->n_weight < 0)
        return keel_fail(KEEL_EARG, "%s: %d inputs and %d weights", parts->op->name, parts->n_in,
                         parts->n_weight);
    keel_value *in = keel_calloc((size_t)parts->n_in, sizeof *in);
    if (!in) return KEEL_ENOMEM;
    keel_node_parts own = *parts;
    own.in = in;
    if ((s = part_twins(g, parts, in)) < 0) goto out;
    n_value = g->n_value; /* views stay, even if nothing reads them */
    if ((s = fill(g, &n, &own)) < 0) goto out;
    if ((s = keel_node_infer(&n.node)) < 0 || (s = check_outputs(&n.node, n_out)) < 0) goto out;
    if (n.node.n_in && g->value[n.in[0]].spec.dtype == KEEL_STRING) {
        /* No kernel moves texts: the value is the input itself, seen in another shape. */
        const keel_spec texts = { KEEL_STRING, n.node.out[0].shape };
        s = add_value(g, &texts, -1, g->value[n.in[0]].index, out);
        if (s >= 0) n_value = g->n_value;
        goto out;
    }
    n.out = keel_calloc((size_t)n_out, sizeof *n.out);
    if (!n.out) {
        s = KEEL_ENOMEM;
        goto out;
    }
    if ((s = reserve((void **)&g->node, g->n_node, sizeof *g->node)) < 0) goto out;
    for (int i = 0; i < n_out; i++)
        if ((s = add_value(g, &n.node.out[i], g->n_node, i, &n.out[i])) < 0) goto out;
    memcpy(out, n.out, (size_t)n_out * sizeof *out);
    g->node[g->n_node++] = n;
    n = (keel_graph_node){ 0 };
    n_value = g->n_value;
out:
    g->n_value = n_value;
    keel_free(in);
    keel_graph_node_free(&n);
    return s;
}

keel_status keel_graph_cast(keel_graph *g, keel_value in, keel_dtype held, keel_value *out)
{
    const keel_spec *spec = keel_graph_spec(g, in);
    const keel_dtype before = g->held;
    *out = in;
    if (!spec || spec->dtype == held) return KEEL_OK;
    g->held = held;
    const keel_status s =
        keel_graph_add(g, &(keel_node_parts){ .op = &keel_op_cast, .n_in = 1, .in = &in }, out, 1);
    g->held = before;
    return s;
}
