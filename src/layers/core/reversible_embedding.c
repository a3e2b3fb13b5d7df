/* A row of a table for each integer, as Embedding; called with reverse=True, a product with the
 * transposed table (or, with tie_weights false, with a matrix of its own): [S, output_dim] gives
 * logits [S, input_dim]. As in Keras the input keeps its type: logits are stored in bfloat16 or
 * float16 only if the policy and the input are, or if reverse_dtype says so. */
#include "layers/core/_embedding.h"
#include "layers/operations/_values.h"
#include <math.h>

typedef struct args_t {
    keel_embedding_args table;
    bool tie_weights;
    int reverse_dtype;
    double logit_soft_cap;
} args_t;

static const keel_field fields[] = {
    KEEL_EMBEDDING_FIELDS,
    KEEL_BOOL(args_t, tie_weights, "true", "the product uses the transposed table"),
    KEEL_CHOICE(args_t, reverse_dtype, "null", "float32|bfloat16|float16",
                "the type in which logits are stored; null: that of input and policy"),
    KEEL_FLOAT(args_t, logit_soft_cap, "null", 0, 0,
               "logits become tanh(logits / cap) * cap; null: they stay"),
    { 0 },
};

static keel_status ready(void *args)
{
    const args_t *a = args;
    if (keel_low_rank_given(&a->table.low_rank) && !a->tie_weights)
        return keel_fail(KEEL_EUNSUP, "lora_rank with tie_weights false: Keras refuses it, too");
    if (a->logit_soft_cap != 0) return KEEL_OK; /* NaN is null */
    return keel_fail(KEEL_EARG, "logit_soft_cap 0: logits would be divided by it");
}

static keel_dtype logits_type(const keel_emit *e)
{
    static const keel_dtype stored[] = { KEEL_FLOAT32, KEEL_BFLOAT16, KEEL_FLOAT16 };
    const int given = ((const args_t *)e->args)->reverse_dtype; /* null is -1 */
    const keel_dtype policy = e->graph->held;
    if (e->graph->real != KEEL_FLOAT32) return e->graph->real;
    if (given < 0 && keel_emit_in(e, 0)->dtype == policy) return policy;
    return stored[given < 0 ? 0 : given];
}

/* pair: of low_rank, where it counts in w. */
static keel_status emit_logits(keel_emit *e, const keel_op *op, const keel_weights *w,
                               const keel_weights *pair)
{
    const double cap = ((const args_t *)e->args)->logit_soft_cap;
    const keel_low_rank *product = &((const args_t *)e->args)->table.low_rank;
    keel_value x;
    e->graph->held = logits_type(e);
    e->out_mask[0] = KEEL_MASK_NONE;
    KEEL_TRY(keel_graph_cast(e->graph, e->in[0], e->graph->held, &x));
    KEEL_TRY(keel_emit_weighted(e, op, NULL, x, w, e->out));
    if (pair && keel_low_rank_given(product))
        KEEL_TRY(keel_low_rank_add_back(e, product, pair, x, e->out));
    if (isnan(cap)) return KEEL_OK;
    KEEL_TRY(keel_emit_scaled(e, e->out[0], 1 / cap, 0, &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_tanh, x, &x));
    return keel_emit_scaled(e, x, cap, 0, e->out);
}

static keel_status emit(keel_emit *e)
{
    static const char *const names[] = { "inputs", "reverse", NULL };
    const args_t *a = e->args;
    const keel_weight_decl reverse = { .name = "reverse_embeddings",
                                       .shape = KEEL_SHAPE(a->table.output_dim, a->table.input_dim),
                                       .initializer = &a->table.embeddings_initializer };
    const json_t *given[2];
    keel_embedding w = { 0 };
    keel_weights own = { 0 };
    KEEL_TRY(keel_call_arguments(e, names, given));
    if (given[1] && !json_is_boolean(given[1]) && !json_is_null(given[1]))
        return keel_fail(KEEL_EUNSUP, "argument reverse: must be true or false");
    KEEL_TRY(keel_embedding_declare(e, &a->table, &w));
    if (!a->tie_weights) KEEL_TRY(keel_emit_weight(e, &reverse, &own));
    if (!json_is_true(given[1])) return keel_embedding_rows(e, &a->table, &w);
    return a->tie_weights ? emit_logits(e, &keel_op_dense_transposed, &w.table, w.pair)
                          : emit_logits(e, &keel_op_dense, &own, NULL);
}

const keel_layer keel_layer_reversible_embedding = {
    .type = { KEEL_LAYER_HEAD("ReversibleEmbedding",
                              "A row of a table for each whole number, or back to the numbers."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_arguments = true,
    .uncast = true,
    .emit = emit,
    .to_config = keel_embedding_config,
    .low_rank = keel_embedding_low_rank,
};
