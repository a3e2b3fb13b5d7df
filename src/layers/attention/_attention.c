/* See _attention.h. */
#include "layers/attention/_attention.h"
#include "ops/dot_product_attention.h"
#include "ops/masked_scores.h"

/* ---- the arguments of a call ----------------------------------------------------------------- */

enum { QUERY, VALUE, KEY, VALUES };
enum { INPUTS, MASK, TRAINING, RETURN_SCORES, CAUSAL, PARAMETERS };

static const char *const parameters[] = { "inputs",          "mask",
                                          "training",        "return_attention_scores",
                                          "use_causal_mask", NULL };

typedef struct call_args {
    int n_in;         /* how many of query, value and key are given */
    int in[VALUES];   /* which input of the layer each is */
    bool masks;       /* the call says which masks there are */
    int mask[VALUES]; /* which input each of those is; -1: none */
    bool scores, causal;
} call_args;

/* A list of two or three tensors. `nulls`: some may be missing, which are -1. */
static keel_status read_list(const json_t *v, const char *name, bool nulls, int out[VALUES], int *n)
{
    const json_t *one;
    size_t i;
    if (!json_is_array(v) || json_array_size(v) < 2 || json_array_size(v) > VALUES)
        return keel_fail(KEEL_EARG, "argument %s: a list of two or three is expected", name);
    json_array_foreach((json_t *)v, i, one)
    {
        const json_t *in = json_object_get(one, KEEL_CALL_VALUE);
        if (!in && !(nulls && json_is_null(one)))
            return keel_fail(KEEL_EUNSUP, "argument %s: must be values of the model", name);
        out[i] = in ? (int)json_integer_value(in) : -1;
    }
    *n = (int)i;
    return KEEL_OK;
}

static keel_status read_argument(const json_t *v, int k, call_args *out)
{
    int n;
    if (k == INPUTS) return read_list(v, parameters[k], false, out->in, &out->n_in);
    if (json_is_null(v) || k == TRAINING) return KEEL_OK; /* the graph decides whether it trains */
    out->masks = out->masks || k == MASK;
    if (k == MASK) return read_list(v, parameters[k], true, out->mask, &n);
    if (!json_is_boolean(v))
        return keel_fail(KEEL_EUNSUP, "argument %s: must be true or false", parameters[k]);
    if (k == RETURN_SCORES) out->scores = json_is_true(v);
    if (k == CAUSAL) out->causal = json_is_true(v);
    return KEEL_OK;
}

static keel_status read_call(const keel_emit *e, call_args *out)
{
    const json_t *given[PARAMETERS];
    *out = (call_args){ .n_in = e->n_in, .in = { 0, 1, 2 }, .mask = { -1, -1, -1 } };
    if (e->call) out->n_in = 0;
    KEEL_TRY(keel_call_arguments(e, parameters, given));
    for (int k = 0; k < PARAMETERS; k++)
        if (given[k]) KEEL_TRY(read_argument(given[k], k, out));
    return out->n_in == 2 || out->n_in == 3
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "it takes query, value and maybe key, not %d inputs",
                           out->n_in);
}

/* The mask of query or value: the one that the call gives, or its own; -1: none. */
static keel_value mask_of(const keel_emit *e, const call_args *c, int k)
{
    if (c->masks) return c->mask[k] < 0 ? KEEL_MASK_NONE : e->in[c->mask[k]];
    return e->mask[c->in[k]];
}

/* ---- scores ---------------------------------------------------------------------------------- */

static keel_status in_pairs(keel_emit *e, keel_value x, bool first, keel_value *out)
{
    const keel_shape s = keel_graph_spec(e->graph, x)->shape;
    const keel_shape as =
        first ? KEEL_SHAPE(s.dim[0], 1, s.dim[1]) : KEEL_SHAPE(1, s.dim[0], s.dim[1]);
    return keel_emit_view(e, &as, x, out);
}

keel_status keel_attention_pairs(keel_emit *e, keel_value query, keel_value key, keel_value *out)
{
    static const keel_binary_args plain = { 0 };
    keel_value both[2];
    KEEL_TRY(in_pairs(e, query, true, &both[0]));
    KEEL_TRY(in_pairs(e, key, false, &both[1]));
    return keel_emit_on(e, &keel_op_plus, &plain, both, 2, out);
}

keel_status keel_attention_sum(keel_emit *e, keel_value pairs, keel_value *out)
{
    static const keel_reduce_args sum = { .to = KEEL_REDUCE_SUM, .over = { false, false, true } };
    return keel_emit_on(e, &keel_op_reduce, &sum, &pairs, 1, out);
}

keel_status keel_attention_scale(keel_emit *e, const keel_weights *w, keel_value *x)
{
    return keel_emit_weighted(e, &keel_op_scale, NULL, *x, w, x);
}

/* Softmax of the scores over what is seen. */
static keel_status weigh(keel_emit *e, const call_args *c, keel_value *x)
{
    static const keel_axis_args last = { .axis = -1 };
    const keel_masked_softmax_args past = { .causal = true };
    const keel_masked_scores_args less = { .causal = c->causal, .less = 1e9 };
    const keel_value mask = mask_of(e, c, VALUE);
    if (mask >= 0) {
        const keel_value in[2] = { *x, mask };
        KEEL_TRY(keel_emit_on(e, &keel_op_masked_scores, &less, in, 2, x));
    }
    if (mask < 0 && c->causal) return keel_emit_on(e, &keel_op_masked_softmax, &past, x, 1, x);
    return keel_emit_on(e, &keel_op_softmax, &last, x, 1, x);
}

/* The weighted sum of the values, without scores in memory. */
static keel_status attend(keel_emit *e, const call_args *c, keel_value query, keel_value key,
                          keel_value value, keel_value *y)
{
    const keel_attention_args *a = e->args;
    const keel_value mask = mask_of(e, c, VALUE);
    const keel_dot_product_attention_args args = {
        .scale = 1, .seen.causal = c->causal, .less = mask < 0 ? 0 : 1e9, .rate = a->dropout
    };
    keel_value in[4] = { query, key, value, mask };
    const int n_in = mask < 0 ? 3 : 4;
    for (int i = 0; i < n_in; i++) {
        const keel_shape s = keel_graph_spec(e->graph, in[i])->shape;
        const keel_shape as =
            i < 3 ? KEEL_SHAPE(s.dim[0], 1, s.dim[1]) : KEEL_SHAPE(1, 1, s.dim[0]);
        KEEL_TRY(keel_emit_view(e, &as, in[i], &in[i]));
    }
    KEEL_TRY(keel_emit_on(e, &keel_op_dot_product_attention, &args, in, n_in, y));
    const keel_shape out = keel_graph_spec(e->graph, *y)->shape;
    const keel_shape as = KEEL_SHAPE(out.dim[0], out.dim[2]);
    return keel_emit_view(e, &as, *y, y);
}

/* The same, and the weights in memory. */
static keel_status attend_by_scores(keel_emit *e, const call_args *c, keel_value weights,
                                    keel_value value, keel_value *y)
{
    const keel_attention_args *a = e->args;
    const keel_dropout_args drop = { .rate = a->dropout };
    KEEL_TRY(weigh(e, c, &weights));
    KEEL_TRY(keel_emit_outputs(e, c->scores ? 2 : 1));
    if (e->training && a->dropout > 0)
        KEEL_TRY(keel_emit_on(e, &keel_op_dropout, &drop, &weights, 1, &weights));
    if (c->scores) e->out[1] = weights;
    return keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ weights, value }, 2, y);
}

keel_status keel_attention_emit(keel_emit *e, keel_scores scores, keel_scaled scaled)
{
    call_args c;
    keel_value weights, y;
    KEEL_TRY(read_call(e, &c));
    keel_value query = e->in[c.in[QUERY]], value = e->in[c.in[VALUE]];
    const keel_value key = c.n_in > KEY ? e->in[c.in[KEY]] : value, mask = mask_of(e, &c, QUERY);
    const keel_shape q = keel_graph_spec(e->graph, query)->shape;
    const keel_shape k = keel_graph_spec(e->graph, key)->shape;
    const keel_shape v = keel_graph_spec(e->graph, value)->shape;
    if (q.rank != 2 || k.rank != 2 || v.rank != 2)
        return keel_fail(q.rank < 2 || k.rank < 2 || v.rank < 2 ? KEEL_ESHAPE : KEEL_EUNSUP,
                         "expected rows of (time, features)");
    if (q.dim[1] != k.dim[1] || k.dim[0] != v.dim[0])
        return keel_fail(KEEL_ESHAPE, "query and key must have the same features, key and value "
                                      "the same steps");
    if (scaled && !c.scores) {
        KEEL_TRY(scaled(e, &query));
        KEEL_TRY(attend(e, &c, query, key, value, &y));
    } else {
        KEEL_TRY(scores(e, query, key, &weights));
        KEEL_TRY(attend_by_scores(e, &c, weights, value, &y));
    }
    if (mask >= 0)
        KEEL_TRY(keel_emit_on(e, &keel_op_masked, NULL, (keel_value[]){ y, mask }, 2, &y));
    e->out[0] = y;
    e->out_mask[0] = mask;
    return KEEL_OK;
}
