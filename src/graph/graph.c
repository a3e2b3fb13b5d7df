/* Building a graph: values and nodes in the order they are emitted. Every node owns what it points
 * to (arguments, input specs, name of its layer), so that a graph outlives what it was built from.
 */
#include "graph/graph.h"
#include "base/memory.h"
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
    g->training = training;
    *out = g;
    return KEEL_OK;
}

void keel_graph_node_free(keel_graph_node *n)
{
    keel_free((void *)n->node.args);
    keel_free((void *)n->node.layer);
    keel_free((void *)n->node.in);
    keel_free(n->in);
}

void keel_graph_destroy(keel_graph *g)
{
    if (!g) return;
    for (int i = 0; i < g->n_node; i++) keel_graph_node_free(&g->node[i]);
    keel_free(g->node);
    keel_free(g->value);
    keel_free(g);
}

/* Make room for one more of `*array`, whose capacity is the next power of two of its count. */
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

static keel_status add_value(keel_graph *g, const keel_spec *spec, int node, int input,
                             keel_value *out)
{
    KEEL_TRY(reserve((void **)&g->value, g->n_value, sizeof *g->value));
    g->value[g->n_value] = (keel_graph_value){ .spec = *spec, .node = node, .input = input };
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

const keel_spec *keel_graph_spec(const keel_graph *g, keel_value v)
{
    return v >= 0 && v < g->n_value ? &g->value[v].spec : NULL;
}

/* The node's own copies of what it was made from. On failure the caller frees what is there. */
static keel_status fill(const keel_graph *g, keel_graph_node *n, const void *args,
                        const keel_value *in, int n_in)
{
    const size_t args_size = n->node.op->args_size;
    char *own_args = keel_calloc(1, args_size);
    n->node.args = own_args;
    keel_spec *specs = keel_calloc((size_t)n_in, sizeof *specs);
    n->node.in = specs;
    n->in = keel_calloc((size_t)n_in, sizeof *n->in);
    n->node.layer = keel_strdup(g->layer ? g->layer : "");
    if (!own_args || !specs || !n->in || !n->node.layer) return KEEL_ENOMEM;
    if (args && args_size) memcpy(own_args, args, args_size);
    for (int i = 0; i < n_in; i++) {
        const keel_spec *s = keel_graph_spec(g, in[i]);
        if (!s) return keel_fail(KEEL_EARG, "%s: input %d is no value", n->node.op->name, i);
        specs[i] = *s;
        n->in[i] = in[i];
    }
    return KEEL_OK;
}

keel_status keel_graph_add(keel_graph *g, const char *op, const void *args, const keel_value *in,
                           int n_in, const keel_variable *weight, const keel_spec *weight_spec,
                           int n_weight, keel_value *out)
{
    const keel_op *found = keel_op_find(op);
    if (!found) return keel_fail(KEEL_EUNSUP, "no op is named '%s'", op);
    return keel_graph_add_op(g, found, args, in, n_in, weight, weight_spec, n_weight, out);
}

keel_status keel_graph_add_op(keel_graph *g, const keel_op *op, const void *args,
                              const keel_value *in, int n_in, const keel_variable *weight,
                              const keel_spec *weight_spec, int n_weight, keel_value *out)
{
    keel_status s = KEEL_OK;
    keel_graph_node n = { .node.op = op };
    if (n_in < 0 || n_weight < 0 || n_weight > KEEL_WEIGHTS_MAX)
        return keel_fail(KEEL_EARG, "%s: %d inputs and %d weights", op->name, n_in, n_weight);
    if ((s = fill(g, &n, args, in, n_in)) < 0) goto out;
    n.node.training = g->training;
    n.node.real = g->real;
    n.node.held = g->held;
    n.node.stream = g->stream;
    n.node.n_in = n_in;
    n.node.n_weight = n_weight;
    for (int i = 0; i < n_weight; i++) {
        n.weight[i] = weight[i];
        n.node.weight[i] = weight_spec[i];
    }
    if ((s = n.node.op->infer(&n.node)) < 0 ||
        (s = keel_shape_check(&n.node.out.shape, keel_dtype_size(n.node.out.dtype))) < 0)
        goto out;
    if ((s = reserve((void **)&g->node, g->n_node, sizeof *g->node)) < 0) goto out;
    if ((s = add_value(g, &n.node.out, g->n_node, -1, &n.out)) < 0) goto out;
    g->node[g->n_node++] = n;
    *out = n.out;
    n = (keel_graph_node){ 0 };
out:
    keel_graph_node_free(&n);
    return s;
}

keel_status keel_graph_cast(keel_graph *g, keel_value in, keel_dtype held, keel_value *out)
{
    const keel_spec *spec = keel_graph_spec(g, in);
    const keel_dtype before = g->held;
    *out = in;
    if (!spec || spec->dtype == held) return KEEL_OK;
    if (!keel_dtype_is_real(spec->dtype) && spec->dtype != KEEL_BFLOAT16) return KEEL_OK;
    g->held = held;
    const keel_status s = keel_graph_add(g, "cast", NULL, &in, 1, NULL, NULL, 0, out);
    g->held = before;
    return s;
}
