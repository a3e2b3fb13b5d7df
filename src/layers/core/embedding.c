/* A row of a table for each integer: ids [S] give [S, output_dim]. With mask_zero, later layers
 * ignore places of 0. */
#include "layers/core/_embedding.h"
#include "layers/core/low_rank.h"

typedef struct args_t {
    keel_embedding_args embedding; /* first */
    keel_low_rank low_rank;
} args_t;

static const keel_field fields[] = { KEEL_EMBEDDING_FIELDS,
                                     KEEL_LOW_RANK_FIELDS(args_t, low_rank),
                                     { 0 } };

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const bool narrow = keel_low_rank_given(&a->low_rank);
    const keel_embedding_args *table = &a->embedding;
    keel_weights w = { 0 };
    if (narrow && table->embeddings_constraint.type)
        return keel_fail(KEEL_EUNSUP,
                         "lora_rank with an embeddings_constraint: Keras refuses it, too");
    KEEL_TRY(keel_embedding_table(e, table, narrow, &w));
    KEEL_TRY(keel_embedding_rows(e, table, &w));
    if (!narrow) return KEEL_OK;
    const keel_weight_decl decl = { .name = "embeddings",
                                    .shape = KEEL_SHAPE(table->input_dim, table->output_dim),
                                    .regularizer = &table->embeddings_regularizer };
    return keel_low_rank_add(e, &a->low_rank, &keel_op_gather, &decl, e->out);
}

static double low_rank(const void *args)
{
    return keel_low_rank_scale(&((const args_t *)args)->low_rank);
}

static keel_status to_config(const void *args, json_t *config)
{
    return keel_low_rank_config(&((const args_t *)args)->low_rank, config);
}

const keel_layer keel_layer_embedding = {
    .type = { KEEL_LAYER_HEAD("Embedding", "A row of a table for each whole number."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .uncast = true,
    .emit = emit,
    .to_config = to_config,
    .low_rank = low_rank,
};
