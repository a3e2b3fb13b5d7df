/* Attention with several heads (Vaswani et al. 2017). Query, key and value are projected to heads,
 * each head weighs the values by softmax(query key^T / sqrt(key_dim)), and another projection joins
 * the heads. The projections are layers, as in Keras. */
#include "layers/attention/_heads.h"
#include <math.h>

typedef struct args_t {
    keel_heads_args heads;
    int64_t num_heads, key_dim, value_dim;
    keel_ints output_shape, attention_axes;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_heads, NULL, 1, 1e6, "how many heads"),
    KEEL_INT(args_t, key_dim, NULL, 1, 1e9, "size of each head of query and key"),
    KEEL_INT(args_t, value_dim, "null", 1, 1e9, "size of each head of value; null: key_dim"),
    KEEL_INTS(args_t, output_shape, 0, "null", 1, 1e9,
              "last dims of the output; null: the query's"),
    KEEL_INTS(args_t, attention_axes, 0, "null", -6, 6,
              "dims that attend to each other, the batch is 0; null: all but the last"),
    KEEL_HEADS_FIELDS,
    { 0 },
};

static int64_t value_dim(const args_t *a)
{
    return a->value_dim == KEEL_INT_NULL ? a->key_dim : a->value_dim;
}

static keel_status make(keel_emit *e)
{
    const args_t *a = e->args;
    keel_heads_call c;
    KEEL_TRY(keel_heads_read(e, &c));
    const keel_shape *query = &keel_emit_in(e, c.in[KEEL_HEADS_QUERY])->shape;
    const keel_ints heads = { 2, { a->num_heads, a->key_dim } };
    const keel_ints values = { 2, { a->num_heads, value_dim(a) } };
    const keel_ints width = { 1, { query->rank ? query->dim[query->rank - 1] : 0 } };
    const int key_rank = keel_graph_spec(e->graph, keel_heads_key(e, &c))->shape.rank;
    const int value_rank = keel_emit_in(e, c.in[KEEL_HEADS_VALUE])->shape.rank;
    if (query->rank < 2 || key_rank < 2 || value_rank < 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, ..., features)");
    KEEL_TRY(keel_heads_dense(e, "query_dense", "query", query->rank, 1, &heads, "linear"));
    KEEL_TRY(keel_heads_dense(e, "key_dense", "key", key_rank, 1, &heads, "linear"));
    if (a->heads.use_gate)
        KEEL_TRY(keel_heads_dense(e, "_gate_dense", "gate", query->rank, 1, &values, "sigmoid"));
    KEEL_TRY(keel_heads_dense(e, "value_dense", "value", value_rank, 1, &values, "linear"));
    KEEL_TRY(e->make(e, "_softmax", "Softmax", json_object()));
    KEEL_TRY(e->make(e, "_dropout_layer", "Dropout", json_pack("{s:f}", "rate", a->heads.dropout)));
    return keel_heads_dense(e, "output_dense", "attention_output", query->rank + 1, 2,
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

/* How a projection [..., heads, size] is turned: others first, then those that attend as one dim,
 * then the size. Heads are the last of the others, or lie behind those that attend. */
typedef struct turned {
    keel_permute_args by;
    keel_shape apart; /* with dims that attend, in the new order */
    keel_shape joined;
    int64_t places; /* how many attend */
} turned;

static turned turn(const bool over[KEEL_RANK_MAX], const keel_shape *s, bool heads_behind)
{
    enum { OTHERS, ATTENDING, BEHIND, TURNS };
    turned t = { .places = 1 };
    int n = 0;
    t.apart.rank = s->rank;
    for (int turn = OTHERS; turn < TURNS; turn++) {
        for (int d = 0; d < s->rank; d++) {
            const bool behind = d == s->rank - 1 || (heads_behind && d == s->rank - 2);
            if ((behind ? BEHIND : over[d] ? ATTENDING : OTHERS) != turn) continue;
            t.apart.dim[n] = s->dim[d];
            t.by.from[n++] = d;
            if (turn == ATTENDING)
                t.places *= s->dim[d];
            else
                t.joined.dim[t.joined.rank++] = s->dim[d];
        }
        if (turn == ATTENDING) t.joined.dim[t.joined.rank++] = t.places;
    }
    return t;
}

static keel_status reshaped(keel_emit *e, const keel_shape *shape, keel_value *v)
{
    const keel_reshape_args as = { .shape = *shape };
    if (keel_shape_equal(shape, &keel_graph_spec(e->graph, *v)->shape)) return KEEL_OK;
    return keel_emit_on(e, &keel_op_reshape, &as, v, 1, v);
}

static keel_status permuted(keel_emit *e, const keel_permute_args *by, int rank, keel_value *v)
{
    int d = 0;
    while (d < rank && by->from[d] == d) d++;
    return d == rank ? KEEL_OK : keel_emit_on(e, &keel_op_permute, by, v, 1, v);
}

static keel_status turn_heads(keel_emit *e, const turned *t, keel_value *v)
{
    KEEL_TRY(permuted(e, &t->by, t->apart.rank, v));
    return reshaped(e, &t->joined, v);
}

static keel_status turn_back(keel_emit *e, const turned *t, int64_t size, keel_value *v)
{
    keel_permute_args back = { 0 };
    keel_shape apart = t->apart;
    for (int d = 0; d < apart.rank; d++) back.from[t->by.from[d]] = d;
    apart.dim[apart.rank - 1] = size;
    KEEL_TRY(reshaped(e, &apart, v));
    return permuted(e, &back, apart.rank, v);
}

/* turn_heads with each matrix transposed: the size before the dims that attend. */
static keel_status turn_transposed(keel_emit *e, const turned *t, keel_value *v)
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

/* Is the last dim before the features the only one that attends? */
static bool is_plain(const bool over[KEEL_RANK_MAX], int rank)
{
    for (int d = 0; d < rank - 3; d++)
        if (over[d]) return false;
    return over[rank - 3];
}

/* The weighted sum of the values, and the weights as the second output. */
static keel_status with_scores(keel_emit *e, const keel_heads_call *c, keel_value q_mask,
                               bool plain, double scale, const turned *q_turn, const turned *k_turn,
                               keel_value query, keel_value key, keel_value value, keel_value *y)
{
    const keel_rescaling_args by = { .scale = scale };
    const args_t *a = e->args;
    keel_value weights;
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &by, &query, 1, &query));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ query, key }, 2, &weights));
    KEEL_TRY(keel_heads_weigh(e, c, q_mask, plain, &weights));
    KEEL_TRY(keel_emit_outputs(e, 2));
    KEEL_TRY(give_scores(e, q_turn, k_turn, weights, &e->out[1]));
    if (a->heads.dropout > 0) KEEL_TRY(keel_heads_project(e, "_dropout_layer", weights, &weights));
    return keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ weights, value }, 2, y);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_heads_call c;
    bool over[KEEL_RANK_MAX];
    keel_value query, key, value, gate = -1, y;
    KEEL_TRY(keel_heads_read(e, &c));
    KEEL_TRY(keel_heads_project(e, "query_dense", e->in[c.in[KEEL_HEADS_QUERY]], &query));
    KEEL_TRY(keel_heads_project(e, "key_dense", keel_heads_key(e, &c), &key));
    if (a->heads.use_gate)
        KEEL_TRY(keel_heads_project(e, "_gate_dense", e->in[c.in[KEEL_HEADS_QUERY]], &gate));
    KEEL_TRY(keel_heads_project(e, "value_dense", e->in[c.in[KEEL_HEADS_VALUE]], &value));
    /* Keras takes the query's mask from the query, whatever the call says. */
    const keel_value q_mask = e->mask[c.in[KEEL_HEADS_QUERY]];
    if (c.in[KEEL_HEADS_QUERY_MASK] >= 0 && q_mask < 0)
        return keel_fail(KEEL_EUNSUP, "query_mask: Keras reads the mask of the query alone");
    const keel_shape q_shape = keel_graph_spec(e->graph, query)->shape;
    const keel_shape k_shape = keel_graph_spec(e->graph, key)->shape;
    const keel_shape v_shape = keel_graph_spec(e->graph, value)->shape;
    KEEL_TRY(attending(a, q_shape.rank, over));
    bool fits = q_shape.rank == k_shape.rank && k_shape.rank == v_shape.rank;
    for (int d = 0; fits && d < q_shape.rank - 2; d++)
        fits = k_shape.dim[d] == v_shape.dim[d] && (over[d] || q_shape.dim[d] == k_shape.dim[d]);
    if (!fits)
        return keel_fail(KEEL_ESHAPE, "key and value must have the same dims but the last, and "
                                      "those of the query where they do not attend");
    const turned q_turn = turn(over, &q_shape, !c.scores), k_turn = turn(over, &k_shape, !c.scores),
                 v_turn = turn(over, &v_shape, !c.scores);
    const double scale = 1 / sqrt((double)a->key_dim);
    const bool plain = is_plain(over, q_shape.rank);
    KEEL_TRY(turn_heads(e, &q_turn, &query));
    KEEL_TRY(turn_heads(e, &v_turn, &value));
    if (c.scores) {
        KEEL_TRY(turn_transposed(e, &k_turn, &key));
        KEEL_TRY(with_scores(e, &c, q_mask, plain, scale, &q_turn, &k_turn, query, key, value, &y));
    } else {
        KEEL_TRY(turn_heads(e, &k_turn, &key));
        KEEL_TRY(keel_heads_attend(e, &c, q_mask, plain, scale, (keel_value[]){ query, key, value },
                                   &y));
    }
    KEEL_TRY(turn_back(e, &q_turn, value_dim(a), &y));
    if (a->heads.use_gate)
        KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &(keel_binary_args){ 0 },
                              (keel_value[]){ y, gate }, 2, &y));
    e->out_mask[0] = e->mask[c.in[KEEL_HEADS_QUERY]];
    return keel_heads_project(e, "output_dense", y, e->out);
}

const keel_layer keel_layer_multi_head_attention = {
    .type = { .name = "MultiHeadAttention",
              .module = "keras.layers",
              .help = "Each place is a weighted sum of the places that it attends to.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 2,
    .max_inputs = KEEL_HEADS_INPUTS,
    .by_arguments = true,
    .takes_masks = true,
    .supports_masking = true,
    .make = make,
    .passes_activity = true,
    .emit = emit,
};
