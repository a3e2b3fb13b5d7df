/* A row of a table for each integer, as Embedding; called with reverse=True, a product with the
 * transposed table (or, with tie_weights false, with a matrix of its own): [S, output_dim] gives
 * logits [S, input_dim]. As in Keras the input keeps its type: logits are stored in bfloat16 or
 * float16 only if the policy and the input are, or if reverse_dtype says so. */
#include "layers/core/_embedding.h"
#include "ops/args.h"
#include <math.h>
#include <string.h>

enum { FLOAT32, BFLOAT16, FLOAT16 }; /* reverse_dtype; null is -1 */

typedef struct args_t {
    keel_embedding_args table;
    bool tie_weights;
    int reverse_dtype;
    double logit_soft_cap;
} args_t;

static const keel_field fields[] = {
    KEEL_EMBEDDING_FIELDS,
    KEEL_REFUSE("lora_rank", "null", "low-rank adaptation"),
    KEEL_REFUSE("lora_alpha", "null", "low-rank adaptation"),
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
    if (a->logit_soft_cap != 0) return KEEL_OK; /* NaN is null */
    return keel_fail(KEEL_EARG, "logit_soft_cap 0: logits would be divided by it");
}

/* The call's argument `reverse`, by place or by name. */
static keel_status read_reverse(const keel_emit *e, bool *reverse)
{
    const json_t *args = json_object_get(e->call, "args"), *v = json_array_get(args, 1);
    const char *key;
    json_t *value;
    if (json_array_size(args) > 2)
        return keel_fail(KEEL_EARG, "%zu arguments", json_array_size(args));
    json_object_foreach(json_object_get(e->call, "kwargs"), key, value)
    {
        if (!strcmp(key, "reverse"))
            v = value;
        else if (strcmp(key, "inputs"))
            return keel_fail(KEEL_EUNSUP, "it is called with the argument '%.60s': not supported",
                             key);
    }
    if (v && !json_is_boolean(v) && !json_is_null(v))
        return keel_fail(KEEL_EUNSUP, "argument reverse: must be true or false");
    *reverse = json_is_true(v);
    return KEEL_OK;
}

static keel_dtype logits_type(const keel_emit *e)
{
    const args_t *a = e->args;
    const keel_dtype policy = e->graph->held;
    if (e->graph->real != KEEL_FLOAT32) return e->graph->real;
    if (a->reverse_dtype < 0 && keel_emit_in(e, 0)->dtype == policy) return policy;
    return a->reverse_dtype == BFLOAT16  ? KEEL_BFLOAT16
           : a->reverse_dtype == FLOAT16 ? KEEL_FLOAT16
                                         : KEEL_FLOAT32;
}

static keel_status emit_logits(keel_emit *e, const keel_op *op, const keel_variable *w,
                               const keel_spec *spec)
{
    const args_t *a = e->args;
    const keel_rescaling_args down = { .scale = 1 / a->logit_soft_cap };
    const keel_rescaling_args up = { .scale = a->logit_soft_cap };
    const keel_value *const in = e->in;
    keel_value x, y;
    e->graph->held = logits_type(e);
    e->out_mask[0] = KEEL_MASK_NONE;
    KEEL_TRY(keel_graph_cast(e->graph, in[0], e->graph->held, &x));
    e->in = &x;
    const keel_status s = keel_emit_weighted(e, op, NULL, w, spec, 1, &y);
    e->in = in;
    KEEL_TRY(s);
    e->out[0] = y;
    if (isnan(a->logit_soft_cap)) return KEEL_OK;
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &down, &y, 1, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_tanh, NULL, &y, 1, &y));
    return keel_emit_on(e, &keel_op_rescaling, &up, &y, 1, e->out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    bool reverse = false;
    keel_variable table, own = 0;
    keel_spec table_spec, own_spec = { 0 };
    KEEL_TRY(read_reverse(e, &reverse));
    KEEL_TRY(keel_embedding_table(e, &a->table, false, &table, &table_spec));
    if (!a->tie_weights) {
        const keel_weight_decl decl = { .name = "reverse_embeddings",
                                        .shape =
                                            KEEL_SHAPE(a->table.output_dim, a->table.input_dim),
                                        .initializer = &a->table.embeddings_initializer };
        KEEL_TRY(e->weight(e, &decl, &own, &own_spec));
    }
    if (!reverse) return keel_embedding_rows(e, &a->table, &table, &table_spec);
    return a->tie_weights ? emit_logits(e, &keel_op_dense_transposed, &table, &table_spec)
                          : emit_logits(e, &keel_op_dense, &own, &own_spec);
}

const keel_layer keel_layer_reversible_embedding = {
    .type = { .name = "ReversibleEmbedding",
              .module = "keras.layers",
              .help = "A row of a table for each whole number, or back to the numbers.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_arguments = true,
    .uncast = true,
    .emit = emit,
};
