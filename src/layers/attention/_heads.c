/* See _heads.h. */
#include "layers/attention/_heads.h"
#include "layers/operations/_operation.h"
#include "layers/regularization/dropout.h"
#include "ops/dot_product_attention.h"
#include <stdio.h>
#include <string.h>

/* ---- the arguments of a call ----------------------------------------------------------------- */

enum { RETURN_SCORES = KEEL_HEADS_INPUTS, TRAINING, CAUSAL, PARAMETERS };

static const char *const parameters[] = { "query",
                                          "value",
                                          "key",
                                          "query_mask",
                                          "value_mask",
                                          "key_mask",
                                          "attention_mask",
                                          "return_attention_scores",
                                          "training",
                                          "use_causal_mask",
                                          NULL };

static keel_status read_argument(const json_t *v, int k, keel_heads_call *out)
{
    const json_t *in = json_object_get(v, KEEL_CALL_VALUE);
    if (!v || json_is_null(v) || k == TRAINING)
        return KEEL_OK; /* the graph decides whether it trains */
    if (k < KEEL_HEADS_INPUTS ? !in : !json_is_boolean(v))
        return keel_fail(KEEL_EUNSUP, "argument %s: must be %s", parameters[k],
                         k < KEEL_HEADS_INPUTS ? "a value of the model" : "true or false");
    if (k < KEEL_HEADS_INPUTS) out->in[k] = (int)json_integer_value(in);
    if (k == RETURN_SCORES) out->scores = json_is_true(v);
    if (k == CAUSAL) out->causal = json_is_true(v);
    return KEEL_OK;
}

static keel_status read_call(const keel_emit *e, keel_heads_call *out)
{
    const json_t *given[PARAMETERS];
    *out = (keel_heads_call){ .in = { -1, -1, -1, -1, -1, -1, -1 } };
    if (!e->call) { /* from C: query, value, key */
        if (e->n_in > KEEL_HEADS_KEY + 1)
            return keel_fail(KEEL_EARG, "it takes query, value and key, not %d inputs", e->n_in);
        for (int k = 0; k < e->n_in; k++) out->in[k] = k;
        return KEEL_OK;
    }
    KEEL_TRY(keel_call_arguments(e, parameters, given));
    const json_t *mask = keel_argument(e, KEEL_HEADS_ATTENTION_MASK, "attention_mask");
    if (json_is_array(mask)) {
        out->mask = mask;
        given[KEEL_HEADS_ATTENTION_MASK] = NULL;
    }
    for (int k = 0; k < PARAMETERS; k++) KEEL_TRY(read_argument(given[k], k, out));
    return out->in[KEEL_HEADS_QUERY] >= 0 && out->in[KEEL_HEADS_VALUE] >= 0
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "it must be called with query and value");
}

static keel_value key_of(const keel_emit *e, const keel_heads_call *c)
{
    return e->in[c->in[c->in[KEEL_HEADS_KEY] < 0 ? KEEL_HEADS_VALUE : KEEL_HEADS_KEY]];
}

keel_status keel_heads_shapes(const keel_emit *e, keel_shape of[3])
{
    keel_heads_call c;
    KEEL_TRY(read_call(e, &c));
    of[0] = keel_emit_in(e, c.in[KEEL_HEADS_QUERY])->shape;
    of[1] = keel_graph_spec(e->graph, key_of(e, &c))->shape;
    of[2] = keel_emit_in(e, c.in[KEEL_HEADS_VALUE])->shape;
    return KEEL_OK;
}

/* The mask of an argument: the one that is given, or its value's own; -1: none. */
static keel_value mask_of(const keel_emit *e, const keel_heads_call *c, int value, int mask)
{
    if (c->in[mask] >= 0) return e->in[c->in[mask]];
    return c->in[value] >= 0 ? e->mask[c->in[value]] : KEEL_MASK_NONE;
}

/* ---- the projections ------------------------------------------------------------------------- */

static const keel_field weight_fields[] = { KEEL_KERNEL_FIELDS, { 0 } };
static const keel_type weights = { .fields = weight_fields };

/* Makes a projection, called by `key`: from rows of rank `rank`, whose last `sums` dims are summed
 * over, to `dims`. */
static keel_status dense(keel_emit *e, const char *key, const char *name, int rank, int sums,
                         const keel_ints *dims, const char *activation)
{
    const keel_heads_args *a = e->args;
    char x[16] = "a", w[16] = "", y[16] = "a", equation[64], *bias = y + 1 + rank - sums;
    json_t *shape = json_array();
    int failed = !shape;
    if (rank + dims->count > 14 || rank - sums + dims->count > KEEL_RANK_MAX) {
        json_decref(shape);
        return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
    }
    for (int i = 0; i < rank; i++) x[i + 1] = (char)('b' + i);
    for (int i = 0; i < rank - sums; i++) {
        y[i + 1] = x[i + 1];
        failed = failed || json_array_append_new(shape, json_null());
    }
    for (int i = 0; i < sums; i++) w[i] = x[1 + rank - sums + i];
    for (int i = 0; i < dims->count; i++) {
        w[sums + i] = bias[i] = (char)('b' + rank + i);
        failed = failed || json_array_append_new(shape, json_integer(dims->at[i]));
    }
    snprintf(equation, sizeof equation, "%s,%s->%s", x, w, y);
    json_t *config =
        json_pack("{s:s,s:s,s:o,s:s?,s:s,s:o}", "name", name, "equation", equation, "output_shape",
                  failed ? NULL : shape, "bias_axes", a->use_bias ? bias : NULL, "activation",
                  activation, "activity_regularizer", keel_object_json(e->activity));
    json_t *of_weights = keel_fields_json(&weights, &a->weights);
    if (failed) json_decref(shape);
    if (json_object_update(config, of_weights)) {
        json_decref(config);
        config = NULL;
    }
    json_decref(of_weights);
    return e->make(e, key, "EinsumDense", config);
}

keel_status keel_heads_make(keel_emit *e, const keel_heads_keys *keys, const keel_shape of[3],
                            const keel_heads_sizes *to)
{
    const keel_heads_args *a = e->args;
    const int rank = of[0].rank;
    const keel_ints width = { 1, { of[0].dim[rank - 1] } };
    KEEL_TRY(dense(e, keys->query, "query", rank, 1, &to->query, "linear"));
    KEEL_TRY(dense(e, keys->key, "key", of[1].rank, 1, &to->key, "linear"));
    if (a->use_gate) KEEL_TRY(dense(e, "_gate_dense", "gate", rank, 1, &to->gate, "sigmoid"));
    KEEL_TRY(dense(e, keys->value, "value", of[2].rank, 1, &to->value, "linear"));
    KEEL_TRY(e->make(e, "_softmax", "Softmax", json_object()));
    KEEL_TRY(e->make(e, "_dropout_layer", "Dropout", json_pack("{s:f}", "rate", a->dropout)));
    return dense(e, keys->output, "attention_output", rank + 1, 2,
                 to->output.count > 0 ? &to->output : &width, "linear");
}

static keel_status project(keel_emit *e, const char *key, keel_value in, keel_value *out)
{
    const keel_value none = KEEL_MASK_NONE;
    return e->sub(e, key, &in, &none, 1, out);
}

keel_status keel_heads_emit(keel_emit *e, const keel_heads_keys *keys, keel_heads_join join)
{
    const keel_heads_args *a = e->args;
    keel_heads_call c;
    keel_value of[3], both[2];
    KEEL_TRY(read_call(e, &c));
    const keel_value from = e->in[c.in[KEEL_HEADS_QUERY]];
    const keel_value mask = mask_of(e, &c, KEEL_HEADS_QUERY, KEEL_HEADS_QUERY_MASK);
    KEEL_TRY(project(e, keys->query, from, &of[0]));
    KEEL_TRY(project(e, keys->key, key_of(e, &c), &of[1]));
    if (a->use_gate) KEEL_TRY(project(e, "_gate_dense", from, &both[1]));
    KEEL_TRY(project(e, keys->value, e->in[c.in[KEEL_HEADS_VALUE]], &of[2]));
    KEEL_TRY(join(e, &c, mask, of, &both[0]));
    if (a->use_gate)
        KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &(keel_binary_args){ 0 }, both, 2, &both[0]));
    e->out_mask[0] = e->mask[c.in[KEEL_HEADS_QUERY]];
    return project(e, keys->output, both[0], e->out);
}

/* ---- who sees whom --------------------------------------------------------------------------- */

/* A mask [others.., T] of the query, or [others.., S], beside scores [others.., heads, T, S]. */
static keel_status add_mask(keel_emit *e, keel_value mask, bool query, keel_shape scores,
                            keel_value *out)
{
    const keel_shape have = keel_graph_spec(e->graph, mask)->shape;
    const int rank = scores.rank;
    bool fits = have.rank == rank - 2;
    scores.dim[rank - 3] = 1;
    scores.dim[query ? rank - 1 : rank - 2] = 1;
    for (int d = 0; fits && d < rank - 2; d++)
        fits = have.dim[d] == scores.dim[d < rank - 3 ? d : query ? rank - 2 : rank - 1];
    if (!fits)
        return keel_fail(KEEL_EUNSUP, "the masks of query, value and key must have a number for "
                                      "each place that attends");
    return keel_emit_view(e, &scores, mask, out);
}

/* attention_mask, [others.., T, S] or [others.., heads, T, S]. */
static keel_status add_given(keel_emit *e, keel_value mask, int rank, keel_value *out)
{
    const keel_compare_args not_zero = { .is = KEEL_NOT_EQUAL };
    keel_shape as = keel_graph_spec(e->graph, mask)->shape;
    if (as.rank < rank - 1 || as.rank > rank)
        return keel_fail(KEEL_EUNSUP, "attention_mask: only (.., T, S) or (.., heads, T, S) with "
                                      "the dims of the rows before is supported");
    if (as.rank == rank - 1) {
        as.dim[rank - 1] = as.dim[rank - 2];
        as.dim[rank - 2] = as.dim[rank - 3];
        as.dim[rank - 3] = 1;
        as.rank = rank;
    }
    KEEL_TRY(keel_emit_on(e, &keel_op_compare, &not_zero, &mask, 1, &mask));
    return keel_emit_view(e, &as, mask, out);
}

/* An array has a batch of 1, or only the dims (T, S). */
static keel_status mask_of_array(keel_emit *e, const json_t *array, int rank, keel_value *out)
{
    int dims = 0;
    for (const json_t *v = array; json_is_array(v); v = json_array_get(v, 0)) dims++;
    return keel_emit_array(e, array, "attention_mask", dims > rank ? rank : rank - 1, out);
}

/* Appends the masks of query, value and key, and that of the call, to inputs of an op. */
static keel_status add_masks(keel_emit *e, const keel_heads_call *c, keel_value query, bool plain,
                             const keel_shape *scores, keel_value *in, int *n_in)
{
    const keel_value value = mask_of(e, c, KEEL_HEADS_VALUE, KEEL_HEADS_VALUE_MASK);
    keel_value key = mask_of(e, c, KEEL_HEADS_KEY, KEEL_HEADS_KEY_MASK);
    if (key == value) key = KEEL_MASK_NONE;
    const keel_value each[] = { query, value, key };
    for (int i = 0; i < 3; i++) {
        if (each[i] < 0) continue;
        if (!plain)
            return keel_fail(KEEL_EUNSUP, "masks are supported where the last dim before the "
                                          "features attends, and no other");
        KEEL_TRY(add_mask(e, each[i], i == 0, *scores, &in[(*n_in)++]));
    }
    if (c->in[KEEL_HEADS_ATTENTION_MASK] < 0 && !c->mask) return KEEL_OK;
    if (!plain)
        return keel_fail(KEEL_EUNSUP, "attention_mask is supported where the last dim before the "
                                      "features attends, and no other");
    keel_value mask;
    if (c->mask)
        KEEL_TRY(mask_of_array(e, c->mask, scores->rank, &mask));
    else
        mask = e->in[c->in[KEEL_HEADS_ATTENTION_MASK]];
    return add_given(e, mask, scores->rank, &in[(*n_in)++]);
}

static keel_status find_seen(const keel_emit *e, const keel_heads_call *c, bool plain, int rank,
                             keel_masked_softmax_args *seen)
{
    const keel_heads_args *a = e->args;
    const bool one = rank == 3 && plain;
    seen->causal = c->causal;
    if (a->sliding_window != KEEL_INT_NULL) seen->window = a->sliding_window;
    /* Keras has two ways: the one with scores gives 0 if nothing is seen, the other a mean. */
    seen->uniform = a->dropout == 0 && !c->scores && one;
    return (seen->causal || seen->window) && !one
               ? keel_fail(KEEL_EUNSUP, "use_causal_mask and sliding_window are supported for rows "
                                        "of (time, features) only")
               : KEEL_OK;
}

/* Softmax of the scores [others.., heads, T, S] over what is seen, in place. */
static keel_status weigh(keel_emit *e, const keel_heads_call *c, keel_value query, bool plain,
                         keel_value *scores)
{
    const keel_shape shape = keel_graph_spec(e->graph, *scores)->shape;
    keel_masked_softmax_args seen = { 0 };
    keel_value in[5] = { *scores };
    int n_in = 1;
    KEEL_TRY(find_seen(e, c, plain, shape.rank, &seen));
    KEEL_TRY(add_masks(e, c, query, plain, &shape, in, &n_in));
    return keel_emit_on(e, &keel_op_masked_softmax, &seen, in, n_in, scores);
}

keel_status keel_heads_score(keel_emit *e, const keel_heads_call *c, keel_value mask, bool plain,
                             double scale, const keel_value of[3], const keel_shape *scores,
                             const keel_shape *given, keel_value *y)
{
    const keel_rescaling_args by = { .scale = scale };
    const keel_heads_args *a = e->args;
    keel_value query, x;
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &by, &of[0], 1, &query));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ query, of[1] }, 2, &x));
    const keel_shape product = keel_graph_spec(e->graph, x)->shape;
    KEEL_TRY(keel_emit_view(e, scores, x, &x));
    KEEL_TRY(weigh(e, c, mask, plain, &x));
    KEEL_TRY(keel_emit_outputs(e, 2));
    KEEL_TRY(keel_emit_view(e, given, x, &e->out[1]));
    if (a->dropout > 0) KEEL_TRY(project(e, "_dropout_layer", x, &x));
    KEEL_TRY(keel_emit_view(e, &product, x, &x));
    return keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ x, of[2] }, 2, y);
}

keel_status keel_heads_attend(keel_emit *e, const keel_heads_call *c, keel_value query_mask,
                              bool plain, double scale, const keel_value of[3], keel_value *out)
{
    const keel_heads_args *a = e->args;
    const keel_shape *q = &keel_graph_spec(e->graph, of[0])->shape;
    const keel_shape *k = &keel_graph_spec(e->graph, of[1])->shape;
    const keel_shape *v = &keel_graph_spec(e->graph, of[2])->shape;
    const keel_shape scores = keel_attention_dims_of(q, k, v).scores;
    keel_dot_product_attention_args args = { .scale = scale, .rate = a->dropout };
    const keel_dropout_how how = { &keel_op_dot_product_attention, &args };
    const keel_value none[7] = { -1, -1, -1, -1, -1, -1, -1 };
    keel_value in[7] = { of[0], of[1], of[2] };
    int n_in = 3, n_out = 1;
    KEEL_TRY(find_seen(e, c, plain, scores.rank, &args.seen));
    KEEL_TRY(add_masks(e, c, query_mask, plain, &scores, in, &n_in));
    if (a->dropout > 0)
        return e->sub_outs(e, "_dropout_layer", &(keel_call_of){ in, none, n_in, &how }, out,
                           &n_out);
    return keel_emit_on(e, how.op, &args, in, n_in, out);
}
