/* Comparisons. Values are real numbers in a graph, also those that are whole in Keras, and float32
 * has no number of its own for each whole one above 2^24. Where both sides are whole numbers of the
 * graph's inputs, in whatever shape, as labels of rows that are to be compared with each other,
 * they are read as they came. */
#include "layers/operations/_operation.h"
#include "ops/all.h"
#include "ops/infer.h"
#include "ops/real.h"

/* Inputs of the graph, and in which shapes they are broadcast. */
typedef struct whole_args {
    keel_comparison is;
    keel_shape shape[2];
} whole_args;

/* Of a part of a row the first dim is that of the part. */
static keel_shape shape_of(const keel_node *n, int k)
{
    keel_shape s = ((const whole_args *)n->args)->shape[k];
    int64_t rest = 1;
    for (int d = 1; d < s.rank; d++) rest *= s.dim[d];
    if (s.rank > 0) s.dim[0] = keel_row_count(&n->in[k]) / rest;
    return s;
}

static keel_status infer(keel_node *n)
{
    keel_shape out = shape_of(n, 0);
    const keel_shape other = shape_of(n, 1);
    if (!keel_spread_over(&out, &other))
        return keel_fail(KEEL_ESHAPE, "compare: rows do not go together");
    return keel_infer_out(n, &out);
}

static int64_t whole_at(keel_dtype dtype, const void *x, int64_t i)
{
    if (dtype == KEEL_INT64) return ((const int64_t *)x)[i];
    return dtype == KEEL_INT32 ? ((const int32_t *)x)[i] : ((const uint8_t *)x)[i];
}

/* A line of the output along its last dim, as places of the two inputs, and how they go on. */
typedef struct line {
    int64_t n, at[2], step[2];
} line;

static line line_of(const keel_node *n, int64_t row, int64_t first)
{
    const keel_shape *out = &n->out[0].shape;
    const int last = out->rank - 1;
    line l = { .n = last < 0 ? 1 : out->dim[last] };
    for (int k = 0; k < 2; k++) {
        const keel_shape in = shape_of(n, k);
        l.at[k] = row * keel_row_count(&n->in[k]) + keel_spread_index(out, &in, first);
        l.step[k] = last >= 0 && in.dim[last] != 1;
    }
    return l;
}

static bool holds_at(const keel_call *c, const line *l, int64_t i)
{
    int64_t x[2];
    for (int k = 0; k < 2; k++)
        x[k] = whole_at(c->node->in[k].dtype, c->in[k], l->at[k] + i * l->step[k]);
    return KEEL_HOLDS(((const whole_args *)c->node->args)->is, x[0], x[1]);
}

#define FORWARD(name, real)                                                                        \
    static void name(const keel_call *c)                                                           \
    {                                                                                              \
        const int64_t n = keel_row_count(&c->node->out[0]);                                        \
        real *y = c->out[0];                                                                       \
        for (int64_t at = 0, many; at < c->rows * n; at += many) {                                 \
            const line l = line_of(c->node, at / n, at % n);                                       \
            many = l.n;                                                                            \
            for (int64_t i = 0; i < many; i++) y[at + i] = holds_at(c, &l, i);                     \
        }                                                                                          \
    }
FORWARD(forward_f32, float)
FORWARD(forward_f64, double)

static keel_going goes(const keel_node *n, int k)
{
    const keel_shape in = shape_of(n, k);
    const int64_t places = in.rank > 0 ? n->out[0].shape.dim[0] : 0;
    if (places > 0 && in.dim[0] == 1) return KEEL_GOES_WHOLE;
    if (places == 0 || n->in[k].shape.rank == 0) return KEEL_GOES_NOT;
    return n->in[k].shape.dim[0] == places ? KEEL_GOES_ALONG : KEEL_GOES_NOT;
}

static const keel_op compare_whole = {
    .name = "compare whole numbers",
    .args_size = sizeof(whole_args),
    .infer = infer,
    .forward = REALS(forward),
    .goes = goes,
};

/* Whether dims in another order leave the numbers of a row in theirs: only dims of 1 move. */
static bool keeps_order(const keel_graph_node *n)
{
    const int64_t *from = ((const keel_permute_args *)n->node.args)->from;
    int64_t last = -1;
    for (int d = 0; d < n->in_spec[0].shape.rank; d++) {
        if (n->in_spec[0].shape.dim[from[d]] == 1) continue;
        if (from[d] < last) return false;
        last = from[d];
    }
    return true;
}

static bool is_wide(keel_dtype t)
{
    return t == KEEL_INT32 || t == KEEL_INT64;
}

/* The input of the graph whose whole numbers a value has; -1: it has others. */
static keel_value whole_input(const keel_graph *g, keel_value v)
{
    while (g->value[v].node >= 0) {
        const keel_graph_node *n = &g->node[g->value[v].node];
        const bool same = n->node.op == &keel_op_cast || n->node.op == &keel_op_reshape ||
                          (n->node.op == &keel_op_permute && keeps_order(n));
        if (!same) return -1;
        v = n->in[0];
    }
    const keel_dtype t = g->value[v].spec.dtype;
    return is_wide(t) || t == KEEL_UINT8 || t == KEEL_BOOL ? v : -1;
}

/* Bytes and bools are whole numbers of any real type. */
static bool is_exact(const keel_graph *g, const keel_operand x[2], whole_args *args,
                     keel_value in[2])
{
    bool wide = false;
    for (int k = 0; k < 2; k++) {
        if (x[k].value < 0 || (in[k] = whole_input(g, x[k].value)) < 0) return false;
        args->shape[k] = keel_graph_spec(g, x[k].value)->shape;
        wide = wide || is_wide(keel_graph_spec(g, in[k])->dtype);
    }
    keel_shape out = args->shape[0];
    return wide && keel_spread_over(&out, &args->shape[1]);
}

keel_status keel_emit_compare(keel_emit *e, keel_comparison is)
{
    keel_compare_args real = { .is = is };
    whole_args whole = { .is = is };
    keel_operand x[2];
    keel_value in[2];
    KEEL_TRY(keel_operands(e, x));
    if (is_exact(e->graph, x, &whole, in))
        return keel_emit_on(e, &compare_whole, &whole, in, 2, e->out);
    return keel_emit_operands(e, &keel_op_compare, &real, x);
}
