/* Attention with several heads (Vaswani et al. 2017). Query, key and value are projected to heads,
 * each head weighs the values by softmax(query key^T / sqrt(key_dim)), and another projection joins
 * the heads. The projections are layers, as in Keras. */
#include "base/memory.h"
#include "layers/layer.h"
#include "ops/args.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct args_t {
    int64_t num_heads, key_dim, value_dim, sliding_window;
    double dropout;
    bool use_bias, use_gate;
    keel_ints output_shape, attention_axes;
    keel_object kernel_initializer, bias_initializer;
    keel_object kernel_regularizer, bias_regularizer;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_heads, NULL, 1, 1e6, "how many heads"),
    KEEL_INT(args_t, key_dim, NULL, 1, 1e9, "size of each head of query and key"),
    KEEL_INT(args_t, value_dim, "null", 1, 1e9, "size of each head of value; null: key_dim"),
    KEEL_FLOAT(args_t, dropout, "0.0", 0, 1, "the fraction of weights that is dropped"),
    KEEL_BOOL(args_t, use_bias, "true", "add a bias to each projection"),
    KEEL_BOOL(args_t, use_gate, "false", "multiply the heads by a sigmoid of the query"),
    KEEL_INTS(args_t, output_shape, 0, "null", 1, 1e9,
              "last dims of the output; null: the query's"),
    KEEL_INTS(args_t, attention_axes, 0, "null", -6, 6,
              "dims that attend to each other, the batch is 0; null: all but the last"),
    KEEL_INT(args_t, sliding_window, "null", 1, 1e15, "how far a place sees; null: any distance"),
    KEEL_REFUSE("flash_attention", "null", "another way to compute it"),
    KEEL_OBJECT(args_t, kernel_initializer, "\"glorot_uniform\"", keel_initializer_find,
                "first values of the kernels"),
    KEEL_OBJECT(args_t, bias_initializer, "\"zeros\"", keel_initializer_find,
                "first values of the biases"),
    KEEL_OBJECT(args_t, kernel_regularizer, "null", keel_regularizer_find, "of the kernels"),
    KEEL_OBJECT(args_t, bias_regularizer, "null", keel_regularizer_find, "of the biases"),
    KEEL_REFUSE("kernel_constraint", "null", "constraint of the kernels"),
    KEEL_REFUSE("bias_constraint", "null", "constraint of the biases"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

/* ---- the arguments of a call ----------------------------------------------------------------- */

enum { QUERY, VALUE, KEY, QUERY_MASK, VALUE_MASK, KEY_MASK, ATTENTION_MASK, VALUES };
enum { RETURN_SCORES = VALUES, TRAINING, CAUSAL, PARAMETERS };

static const char *const parameters[] = { "query",
                                          "value",
                                          "key",
                                          "query_mask",
                                          "value_mask",
                                          "key_mask",
                                          "attention_mask",
                                          "return_attention_scores",
                                          "training",
                                          "use_causal_mask" };

typedef struct call_args {
    int in[VALUES]; /* which input of the layer; -1: not given */
    bool scores, causal;
} call_args;

static keel_status read_argument(const json_t *v, int k, call_args *out)
{
    const json_t *in = json_object_get(v, KEEL_CALL_VALUE);
    if (!v || json_is_null(v) || k == TRAINING)
        return KEEL_OK; /* the graph decides whether it trains */
    if (k < VALUES ? !in : !json_is_boolean(v))
        return keel_fail(KEEL_EUNSUP, "argument %s: must be %s", parameters[k],
                         k < VALUES ? "a value of the model" : "true or false");
    if (k < VALUES) out->in[k] = (int)json_integer_value(in);
    if (k == RETURN_SCORES) out->scores = json_is_true(v);
    if (k == CAUSAL) out->causal = json_is_true(v);
    return KEEL_OK;
}

static keel_status read_call(const keel_emit *e, call_args *out)
{
    const json_t *args = json_object_get(e->call, "args"), *v;
    const char *key;
    size_t i;
    *out = (call_args){ .in = { -1, -1, -1, -1, -1, -1, -1 } };
    if (!e->call) { /* from C: query, value, key */
        if (e->n_in > KEY + 1)
            return keel_fail(KEEL_EARG, "it takes query, value and key, not %d inputs", e->n_in);
        for (int k = 0; k < e->n_in; k++) out->in[k] = k;
        return KEEL_OK;
    }
    if (json_array_size(args) > PARAMETERS)
        return keel_fail(KEEL_EARG, "%zu arguments", json_array_size(args));
    json_array_foreach(args, i, v) KEEL_TRY(read_argument(v, (int)i, out));
    json_object_foreach(json_object_get(e->call, "kwargs"), key, v)
    {
        int k = 0;
        while (k < PARAMETERS && strcmp(parameters[k], key)) k++;
        if (k == PARAMETERS)
            return keel_fail(KEEL_EUNSUP, "it is called with the argument '%.60s': not supported",
                             key);
        KEEL_TRY(read_argument(v, k, out));
    }
    return out->in[QUERY] >= 0 && out->in[VALUE] >= 0
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "it must be called with query and value");
}

static keel_value key_of(const keel_emit *e, const call_args *c)
{
    return e->in[c->in[c->in[KEY] < 0 ? VALUE : KEY]];
}

static int64_t value_dim(const args_t *a)
{
    return a->value_dim == KEEL_INT_NULL ? a->key_dim : a->value_dim;
}

/* ---- the projections ------------------------------------------------------------------------- */

/* A projection of rows of rank `rank`, the last `sums` dims of which are summed over, to `dims`. */
static keel_status make_dense(keel_emit *e, const char *key, const char *name, int rank, int sums,
                              const keel_ints *dims, const char *activation)
{
    const args_t *a = e->args;
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
    json_t *config = json_pack("{s:s,s:s,s:o,s:s?,s:s,s:o,s:o,s:o*,s:o*,s:o*}", "name", name,
                               "equation", equation, "output_shape", failed ? NULL : shape,
                               "bias_axes", a->use_bias ? bias : NULL, "activation", activation,
                               "kernel_initializer", keel_object_json(&a->kernel_initializer),
                               "bias_initializer", keel_object_json(&a->bias_initializer),
                               "kernel_regularizer", keel_object_json(&a->kernel_regularizer),
                               "bias_regularizer", keel_object_json(&a->bias_regularizer),
                               "activity_regularizer", keel_object_json(e->activity));
    if (failed) json_decref(shape);
    return e->make(e, key, "EinsumDense", config);
}

static keel_status make(keel_emit *e)
{
    const args_t *a = e->args;
    call_args c;
    KEEL_TRY(read_call(e, &c));
    const keel_shape *query = &keel_emit_in(e, c.in[QUERY])->shape;
    const keel_ints heads = { 2, { a->num_heads, a->key_dim } };
    const keel_ints values = { 2, { a->num_heads, value_dim(a) } };
    const keel_ints width = { 1, { query->rank ? query->dim[query->rank - 1] : 0 } };
    const int key_rank = keel_graph_spec(e->graph, key_of(e, &c))->shape.rank;
    const int value_rank = keel_emit_in(e, c.in[VALUE])->shape.rank;
    if (query->rank < 2 || key_rank < 2 || value_rank < 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, ..., features)");
    KEEL_TRY(make_dense(e, "query_dense", "query", query->rank, 1, &heads, "linear"));
    KEEL_TRY(make_dense(e, "key_dense", "key", key_rank, 1, &heads, "linear"));
    if (a->use_gate)
        KEEL_TRY(make_dense(e, "_gate_dense", "gate", query->rank, 1, &values, "sigmoid"));
    KEEL_TRY(make_dense(e, "value_dense", "value", value_rank, 1, &values, "linear"));
    KEEL_TRY(e->make(e, "_softmax", "Softmax", json_object()));
    KEEL_TRY(e->make(e, "_dropout_layer", "Dropout", json_pack("{s:f}", "rate", a->dropout)));
    return make_dense(e, "output_dense", "attention_output", query->rank + 1, 2,
                      a->output_shape.count > 0 ? &a->output_shape : &width, "linear");
}

/* ---- the heads ------------------------------------------------------------------------------- */

/* For rows [..., heads, size]: which dims attend to each other. */
static keel_status attending(const args_t *a, int rank, bool over[KEEL_RANK_MAX])
{
    for (int d = 0; d < KEEL_RANK_MAX; d++) over[d] = a->attention_axes.count < 0 && d < rank - 2;
    for (int i = 0; i < a->attention_axes.count; i++) {
        const int64_t axis = a->attention_axes.at[i];
        const int64_t d = (axis < 0 ? axis + rank : axis) - 1;
        if (d < 0 || d >= rank - 2 || over[d])
            return keel_fail(KEEL_EARG, "attention_axes: %lld is no dim between batch and features",
                             (long long)axis);
        over[d] = true;
    }
    return a->attention_axes.count == 0 ? keel_fail(KEEL_EARG, "attention_axes: none") : KEEL_OK;
}

/* How a projection [..., heads, size] is turned: others and heads first, then those that attend as
 * one dim, and the size. */
typedef struct turned {
    keel_permute_args by;
    keel_shape apart; /* with dims that attend, in the new order */
    keel_shape joined;
    int64_t places; /* how many attend */
} turned;

static turned turn(const bool over[KEEL_RANK_MAX], const keel_shape *s)
{
    turned t = { .places = 1 };
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < s->rank - 1; d++)
            if (over[d] == (pass == 1)) t.by.from[n++] = d;
    t.by.from[n++] = s->rank - 1;
    t.apart.rank = s->rank;
    for (int d = 0; d < s->rank; d++) {
        t.apart.dim[d] = s->dim[t.by.from[d]];
        if (over[t.by.from[d]])
            t.places *= t.apart.dim[d];
        else if (d < s->rank - 1)
            t.joined.dim[t.joined.rank++] = t.apart.dim[d];
    }
    t.joined.dim[t.joined.rank++] = t.places;
    t.joined.dim[t.joined.rank++] = s->dim[s->rank - 1];
    return t;
}

static keel_status reshaped(keel_emit *e, const keel_shape *shape, keel_value *v)
{
    const keel_reshape_args as = { .shape = *shape };
    if (keel_shape_equal(shape, &keel_graph_spec(e->graph, *v)->shape)) return KEEL_OK;
    return keel_emit_on(e, &keel_op_reshape, &as, v, 1, v);
}

static keel_status heads_first(keel_emit *e, const turned *t, keel_value *v)
{
    KEEL_TRY(keel_emit_on(e, &keel_op_permute, &t->by, v, 1, v));
    return reshaped(e, &t->joined, v);
}

static keel_status heads_last(keel_emit *e, const turned *t, int64_t size, keel_value *v)
{
    keel_permute_args back = { 0 };
    keel_shape apart = t->apart;
    for (int d = 0; d < apart.rank; d++) back.from[t->by.from[d]] = d;
    apart.dim[apart.rank - 1] = size;
    KEEL_TRY(reshaped(e, &apart, v));
    return keel_emit_on(e, &keel_op_permute, &back, v, 1, v);
}

/* The same with each matrix transposed: the size before the dims that attend. */
static keel_status heads_first_transposed(keel_emit *e, const turned *t, keel_value *v)
{
    const int rank = t->apart.rank, others = t->joined.rank - 2;
    keel_permute_args by = t->by;
    keel_shape joined = t->joined;
    by.from[others] = t->by.from[rank - 1];
    for (int d = others; d < rank - 1; d++) by.from[d + 1] = t->by.from[d];
    joined.dim[others] = t->joined.dim[others + 1];
    joined.dim[others + 1] = t->joined.dim[others];
    KEEL_TRY(keel_emit_on(e, &keel_op_permute, &by, v, 1, v));
    return reshaped(e, &joined, v);
}

static keel_status project(keel_emit *e, const char *key, keel_value in, keel_value *out)
{
    const keel_value none = KEEL_MASK_NONE;
    return e->sub(e, key, &in, &none, 1, out);
}

/* ---- who sees whom --------------------------------------------------------------------------- */

/* The mask of an argument: given, or that of its value; -1: none. */
static keel_value mask_of(const keel_emit *e, const call_args *c, int value, int mask)
{
    if (c->in[mask] >= 0) return e->in[c->in[mask]];
    return c->in[value] >= 0 ? e->mask[c->in[value]] : KEEL_MASK_NONE;
}

/* The masks of query, value and key, and that of the call, behind `in`, whose scores are of
 * [heads, T, S]. */
static keel_status add_masks(keel_emit *e, const call_args *c, int rank, keel_value *in, int *n_in)
{
    /* Keras takes the query's mask from the query, whatever the call says. */
    const keel_value query = e->mask[c->in[QUERY]], value = mask_of(e, c, VALUE, VALUE_MASK);
    keel_value key = mask_of(e, c, KEY, KEY_MASK);
    if (key == value) key = KEEL_MASK_NONE;
    const keel_value each[] = { query, value, key };
    const keel_compare_args not_zero = { .is = KEEL_NOT_EQUAL };
    if (c->in[QUERY_MASK] >= 0 && query < 0)
        return keel_fail(KEEL_EUNSUP, "query_mask: Keras reads the mask of the query alone");
    for (int i = 0; i < 3; i++) {
        if (each[i] < 0) continue;
        const keel_shape s = keel_graph_spec(e->graph, each[i])->shape;
        if (rank != 3 || s.rank != 1)
            return keel_fail(KEEL_EUNSUP,
                             "masks of rows that are not (time, features) are not supported");
        const keel_shape as = i == 0 ? KEEL_SHAPE(1, s.dim[0], 1) : KEEL_SHAPE(1, 1, s.dim[0]);
        in[*n_in] = each[i];
        KEEL_TRY(reshaped(e, &as, &in[(*n_in)++]));
    }
    if (c->in[ATTENTION_MASK] < 0) return KEEL_OK;
    keel_value mask = e->in[c->in[ATTENTION_MASK]];
    keel_shape as = keel_graph_spec(e->graph, mask)->shape;
    if (rank != 3 || as.rank < 2 || as.rank > 3)
        return keel_fail(KEEL_EUNSUP, "attention_mask: only (T, S) or (heads, T, S) of rows of "
                                      "(time, features) is supported");
    if (as.rank == 2) as = KEEL_SHAPE(1, as.dim[0], as.dim[1]);
    KEEL_TRY(keel_emit_on(e, &keel_op_compare, &not_zero, &mask, 1, &mask));
    in[*n_in] = mask;
    return reshaped(e, &as, &in[(*n_in)++]);
}

/* Causal and window count steps, the first dim of query and value. */
static keel_status seen_of(const keel_emit *e, const call_args *c, const bool over[KEEL_RANK_MAX],
                           int rank, keel_masked_softmax_args *out)
{
    const args_t *a = e->args;
    *out = (keel_masked_softmax_args){ .causal = c->causal };
    if (a->sliding_window != KEEL_INT_NULL) out->window = a->sliding_window;
    if ((out->causal || out->window) && (rank != 3 || !over[0]))
        return keel_fail(KEEL_EUNSUP,
                         "use_causal_mask and sliding_window are supported for rows of "
                         "(time, features) only");
    /* Keras has two ways: that with scores gives 0 where nothing is seen, the other one a mean. */
    out->uniform = a->dropout == 0 && !c->scores && rank == 3;
    return KEEL_OK;
}

/* [others..., heads, T, S] with all dims that attend. */
static keel_status give_scores(keel_emit *e, const turned *q, const turned *k, keel_value scores,
                               keel_value *out)
{
    const int others = q->joined.rank - 2;
    keel_shape shape = { .rank = others };
    if (2 * (q->apart.rank - 1) - others > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "scores of more than %d dims", KEEL_RANK_MAX);
    for (int d = 0; d < others; d++) shape.dim[d] = q->apart.dim[d];
    for (int d = others; d < q->apart.rank - 1; d++) shape.dim[shape.rank++] = q->apart.dim[d];
    for (int d = others; d < k->apart.rank - 1; d++) shape.dim[shape.rank++] = k->apart.dim[d];
    *out = scores;
    return reshaped(e, &shape, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_rescaling_args scale = { .scale = 1 / sqrt((double)a->key_dim) };
    keel_masked_softmax_args seen;
    call_args c;
    bool over[KEEL_RANK_MAX];
    keel_value query, key, value, gate = -1, weights, y, scored[5];
    int n_scored = 1;
    KEEL_TRY(read_call(e, &c));
    KEEL_TRY(project(e, "query_dense", e->in[c.in[QUERY]], &query));
    KEEL_TRY(project(e, "key_dense", key_of(e, &c), &key));
    if (a->use_gate) KEEL_TRY(project(e, "_gate_dense", e->in[c.in[QUERY]], &gate));
    KEEL_TRY(project(e, "value_dense", e->in[c.in[VALUE]], &value));
    const keel_shape q_shape = keel_graph_spec(e->graph, query)->shape;
    const keel_shape k_shape = keel_graph_spec(e->graph, key)->shape;
    const keel_shape v_shape = keel_graph_spec(e->graph, value)->shape;
    KEEL_TRY(attending(a, q_shape.rank, over));
    KEEL_TRY(seen_of(e, &c, over, q_shape.rank, &seen));
    bool fits = q_shape.rank == k_shape.rank && k_shape.rank == v_shape.rank;
    for (int d = 0; fits && d < q_shape.rank - 2; d++)
        fits = k_shape.dim[d] == v_shape.dim[d] && (over[d] || q_shape.dim[d] == k_shape.dim[d]);
    if (!fits)
        return keel_fail(KEEL_ESHAPE, "key and value must have the same dims but the last, and "
                                      "those of the query where they do not attend");
    const turned q_turn = turn(over, &q_shape), k_turn = turn(over, &k_shape),
                 v_turn = turn(over, &v_shape);
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &scale, &query, 1, &query));
    KEEL_TRY(heads_first(e, &q_turn, &query));
    KEEL_TRY(heads_first(e, &v_turn, &value));
    KEEL_TRY(heads_first_transposed(e, &k_turn, &key));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ query, key }, 2, scored));
    KEEL_TRY(add_masks(e, &c, q_shape.rank, scored, &n_scored));
    KEEL_TRY(keel_emit_on(e, &keel_op_masked_softmax, &seen, scored, n_scored, &weights));
    if (c.scores) {
        KEEL_TRY(keel_emit_outputs(e, 2));
        KEEL_TRY(give_scores(e, &q_turn, &k_turn, weights, &e->out[1]));
    }
    if (a->dropout > 0) KEEL_TRY(project(e, "_dropout_layer", weights, &weights));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ weights, value }, 2, &y));
    KEEL_TRY(heads_last(e, &q_turn, value_dim(a), &y));
    if (a->use_gate)
        KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &(keel_binary_args){ 0 },
                              (keel_value[]){ y, gate }, 2, &y));
    e->out_mask[0] = e->mask[c.in[QUERY]];
    return project(e, "output_dense", y, e->out);
}

const keel_layer keel_layer_multi_head_attention = {
    .type = { .name = "MultiHeadAttention",
              .module = "keras.layers",
              .help = "Each place is a weighted sum of the places that it attends to.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 2,
    .max_inputs = VALUES,
    .by_arguments = true,
    .takes_masks = true,
    .supports_masking = true,
    .make = make,
    .passes_activity = true,
    .emit = emit,
};
