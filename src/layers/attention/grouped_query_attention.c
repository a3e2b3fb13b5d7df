/* Attention in which several heads of the query share a head of key and value (Ainslie et al.
 * 2023): head h of U uses head h / (U / V) of V. */
#include "layers/attention/_heads.h"
#include <math.h>

typedef struct args_t {
    keel_heads_args heads;
    int64_t head_dim, num_query_heads, num_key_value_heads;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, head_dim, NULL, 1, 1e9, "size of each head"),
    KEEL_INT(args_t, num_query_heads, NULL, 1, 1e6, "how many heads of the query"),
    KEEL_INT(args_t, num_key_value_heads, NULL, 1, 1e6, "how many heads of key and value"),
    KEEL_HEADS_FIELDS,
    { 0 },
};

static keel_status ready(void *args)
{
    const args_t *a = args;
    if (a->num_query_heads % a->num_key_value_heads == 0) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "num_query_heads: %lld are not a multiple of the %lld of key and "
                     "value",
                     (long long)a->num_query_heads, (long long)a->num_key_value_heads);
}

static keel_status make(keel_emit *e)
{
    const args_t *a = e->args;
    keel_heads_call c;
    KEEL_TRY(keel_heads_read(e, &c));
    const keel_shape *query = &keel_emit_in(e, c.in[KEEL_HEADS_QUERY])->shape;
    const keel_shape *value = &keel_emit_in(e, c.in[KEEL_HEADS_VALUE])->shape;
    const keel_shape *key = &keel_graph_spec(e->graph, keel_heads_key(e, &c))->shape;
    const keel_ints heads = { 2, { a->num_query_heads, a->head_dim } };
    const keel_ints shared = { 2, { a->num_key_value_heads, a->head_dim } };
    const keel_ints width = { 1, { query->dim[1] } };
    if (query->rank != 2 || value->rank != 2 || key->rank != 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, features)");
    if (query->dim[1] != value->dim[1] || value->dim[0] != key->dim[0])
        return keel_fail(KEEL_ESHAPE, "query and value must have the same features, key and value "
                                      "the same steps");
    KEEL_TRY(keel_heads_dense(e, "_query_dense", "query", 2, 1, &heads, "linear"));
    KEEL_TRY(keel_heads_dense(e, "_key_dense", "key", 2, 1, &shared, "linear"));
    if (a->heads.use_gate)
        KEEL_TRY(keel_heads_dense(e, "_gate_dense", "gate", 2, 1, &heads, "sigmoid"));
    KEEL_TRY(keel_heads_dense(e, "_value_dense", "value", 2, 1, &shared, "linear"));
    KEEL_TRY(e->make(e, "_softmax", "Softmax", json_object()));
    KEEL_TRY(e->make(e, "_dropout_layer", "Dropout", json_pack("{s:f}", "rate", a->heads.dropout)));
    return keel_heads_dense(e, "_output_dense", "attention_output", 3, 2, &width, "linear");
}

/* [T, heads, size] as [heads, T, size], or each matrix transposed, [heads, size, T]. */
static keel_status heads_first(keel_emit *e, bool transposed, keel_value *x)
{
    const keel_permute_args by = { .from = { 1, transposed ? 2 : 0, transposed ? 0 : 2 } };
    return keel_emit_on(e, &keel_op_permute, &by, x, 1, x);
}

static keel_status view(keel_emit *e, int64_t matrices, int64_t lines, int64_t columns,
                        keel_value *x)
{
    const keel_shape as = KEEL_SHAPE(matrices, lines, columns);
    return keel_emit_view(e, &as, *x, x);
}

/* The weighted sum of the values, and the weights as the second output. The heads that share one
 * are computed as one matrix, so nothing is repeated. */
static keel_status with_scores(keel_emit *e, const keel_heads_call *c, keel_value mask, double by,
                               const keel_value of[3], keel_value *y)
{
    static const keel_permute_args heads_last = { .from = { 1, 0, 2 } };
    const args_t *a = e->args;
    const keel_rescaling_args scale = { .scale = by };
    const int64_t heads = a->num_query_heads, shared = a->num_key_value_heads;
    const int64_t steps = keel_graph_spec(e->graph, of[0])->shape.dim[0];
    const int64_t seen = keel_graph_spec(e->graph, of[1])->shape.dim[0];
    const int64_t together = heads / shared * steps;
    keel_value query, key = of[1], value = of[2], weights;
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &scale, &of[0], 1, &query));
    KEEL_TRY(heads_first(e, false, &query));
    KEEL_TRY(heads_first(e, false, &value));
    KEEL_TRY(heads_first(e, true, &key));
    KEEL_TRY(view(e, shared, together, a->head_dim, &query));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ query, key }, 2, &weights));
    KEEL_TRY(view(e, heads, steps, seen, &weights));
    KEEL_TRY(keel_heads_weigh(e, c, mask, true, &weights));
    KEEL_TRY(keel_emit_outputs(e, 2));
    e->out[1] = weights;
    if (a->heads.dropout > 0) KEEL_TRY(keel_heads_project(e, "_dropout_layer", weights, &weights));
    KEEL_TRY(view(e, shared, together, seen, &weights));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ weights, value }, 2, y));
    KEEL_TRY(view(e, heads, steps, a->head_dim, y));
    return keel_emit_on(e, &keel_op_permute, &heads_last, y, 1, y);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const double scale = 1 / sqrt((double)a->head_dim);
    keel_heads_call c;
    keel_value of[3], gate = -1, y;
    KEEL_TRY(keel_heads_read(e, &c));
    const keel_value from = e->in[c.in[KEEL_HEADS_QUERY]];
    const int given = c.in[KEEL_HEADS_QUERY_MASK];
    const keel_value mask = given < 0 ? e->mask[c.in[KEEL_HEADS_QUERY]] : e->in[given];
    KEEL_TRY(keel_heads_project(e, "_query_dense", from, &of[0]));
    KEEL_TRY(keel_heads_project(e, "_key_dense", keel_heads_key(e, &c), &of[1]));
    if (a->heads.use_gate) KEEL_TRY(keel_heads_project(e, "_gate_dense", from, &gate));
    KEEL_TRY(keel_heads_project(e, "_value_dense", e->in[c.in[KEEL_HEADS_VALUE]], &of[2]));
    KEEL_TRY(c.scores ? with_scores(e, &c, mask, scale, of, &y)
                      : keel_heads_attend(e, &c, mask, true, scale, of, &y));
    if (a->heads.use_gate)
        KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &(keel_binary_args){ 0 },
                              (keel_value[]){ y, gate }, 2, &y));
    e->out_mask[0] = e->mask[c.in[KEEL_HEADS_QUERY]];
    return keel_heads_project(e, "_output_dense", y, e->out);
}

const keel_layer keel_layer_grouped_query_attention = {
    .type = { .name = "GroupedQueryAttention",
              .module = "keras.layers",
              .help = "Attention in which several heads of the query share one of key and value.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .aliases = "GroupQueryAttention",
    .exported = "GroupQueryAttention",
    .min_inputs = 2,
    .max_inputs = KEEL_HEADS_INPUTS,
    .by_arguments = true,
    .supports_masking = true,
    .make = make,
    .passes_activity = true,
    .emit = emit,
};
