/* A row of a table for each integer: ids [S] give [S, output_dim]. With mask_zero, later layers
 * ignore places of 0. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t input_dim, output_dim;
    keel_object embeddings_initializer, embeddings_regularizer, embeddings_constraint;
    bool mask_zero;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, input_dim, NULL, 1, 1e15, "rows of the table: the largest id + 1"),
    KEEL_INT(args_t, output_dim, NULL, 1, 1e15, "numbers in a row of the table"),
    KEEL_OBJECT(args_t, embeddings_initializer, "\"random_uniform\"", keel_initializer_find,
                "first values of the table"),
    KEEL_OBJECT(args_t, embeddings_regularizer, "null", keel_regularizer_find, "of the table"),
    KEEL_OBJECT(args_t, embeddings_constraint, "null", keel_constraint_find, "of the table"),
    KEEL_BOOL(args_t, mask_zero, "false", "0 is padding: it does not count in later layers"),
    KEEL_REFUSE("weights", "null", "first values as numbers"),
    KEEL_REFUSE("lora_rank", "null", "low-rank adaptation"),
    KEEL_REFUSE("lora_alpha", "null", "low-rank adaptation"),
    KEEL_REFUSE("quantization_config", "null", "quantized weights"),
    KEEL_IGNORE("input_length", "Keras ignores it too"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_not_equal_to_args zero = { .value = 0 };
    keel_variable w;
    keel_spec spec;
    const keel_weight_decl table = { .name = "embeddings",
                                     .shape = KEEL_SHAPE(a->input_dim, a->output_dim),
                                     .initializer = &a->embeddings_initializer,
                                     .regularizer = &a->embeddings_regularizer,
                                     .constraint = &a->embeddings_constraint };
    KEEL_TRY(e->weight(e, &table, &w, &spec));
    e->out_mask[0] = KEEL_MASK_NONE;
    if (a->mask_zero)
        KEEL_TRY(keel_emit_on(e, &keel_op_not_equal_to, &zero, e->in, 1, e->out_mask));
    return keel_emit_weighted(e, &keel_op_gather, NULL, &w, &spec, 1, e->out);
}

const keel_layer keel_layer_embedding = {
    .type = { .name = "Embedding",
              .module = "keras.layers",
              .help = "A row of a table for each whole number.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .uncast = true,
    .emit = emit,
};
