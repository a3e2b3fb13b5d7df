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

static const keel_heads_keys keys = { "_query_dense", "_key_dense", "_value_dense",
                                      "_output_dense" };

static keel_status make(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_ints heads = { 2, { a->num_query_heads, a->head_dim } };
    const keel_ints shared = { 2, { a->num_key_value_heads, a->head_dim } };
    keel_shape of[3];
    KEEL_TRY(keel_heads_shapes(e, of));
    if (of[0].rank != 2 || of[1].rank != 2 || of[2].rank != 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, features)");
    if (of[0].dim[1] != of[2].dim[1] || of[2].dim[0] != of[1].dim[0])
        return keel_fail(KEEL_ESHAPE, "query and value must have the same features, key and value "
                                      "the same steps");
    return keel_heads_make(e, &keys, of,
                           &(keel_heads_sizes){ heads, shared, shared, heads, { 0 } });
}

/* Of heads [T, heads, size]; with scores, heads that share one are computed as one matrix, so
 * nothing is repeated. */
static keel_status join(keel_emit *e, const keel_heads_call *c, keel_value mask, keel_value of[3],
                        keel_value *y)
{
    static const int64_t first[] = { 1, 0, 2 }, transposed[] = { 1, 2, 0 };
    const args_t *a = e->args;
    const double scale = 1 / sqrt((double)a->head_dim);
    const int64_t heads = a->num_query_heads, shared = a->num_key_value_heads;
    const int64_t steps = keel_graph_spec(e->graph, of[0])->shape.dim[0];
    const int64_t seen = keel_graph_spec(e->graph, of[1])->shape.dim[0];
    const keel_shape together = KEEL_SHAPE(shared, heads / shared * steps, a->head_dim);
    const keel_shape apart = KEEL_SHAPE(heads, steps, a->head_dim);
    const keel_shape scores = KEEL_SHAPE(heads, steps, seen);
    if (!c->scores) return keel_heads_attend(e, c, mask, true, scale, of, y);
    for (int i = 0; i < 3; i++)
        KEEL_TRY(keel_emit_permuted(e, i == 1 ? transposed : first, of[i], &of[i]));
    KEEL_TRY(keel_emit_view(e, &together, of[0], &of[0]));
    KEEL_TRY(keel_heads_score(e, c, mask, true, scale, of, &scores, &scores, y));
    KEEL_TRY(keel_emit_view(e, &apart, *y, y));
    return keel_emit_permuted(e, first, *y, y);
}

static keel_status emit(keel_emit *e)
{
    return keel_heads_emit(e, &keys, join);
}

const keel_layer keel_layer_grouped_query_attention = {
    .type = { KEEL_LAYER_HEAD(
                  "GroupedQueryAttention",
                  "Attention in which several heads of the query share one of key and value."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .aliases = "GroupQueryAttention",
    .exported = "GroupQueryAttention",
    .min_inputs = 2,
    .max_inputs = KEEL_HEADS_INPUTS,
    .by_arguments = true,
    .masks_at_run = true,
    .supports_masking = true,
    .make =
        make, /* these layers get its activity_regularizer, which it also has itself, as in Keras */
    .emit = emit,
};
