/* A row of a table for each integer: ids [S] give [S, output_dim]. With mask_zero, later layers
 * ignore places of 0. */
#include "layers/core/_embedding.h"

static const keel_field fields[] = { KEEL_EMBEDDING_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    keel_embedding w = { 0 };
    KEEL_TRY(keel_embedding_declare(e, e->args, &w));
    return keel_embedding_rows(e, e->args, &w);
}

const keel_layer keel_layer_embedding = {
    .type = { KEEL_LAYER_HEAD("Embedding", "A row of a table for each whole number."),
              .args_size = sizeof(keel_embedding_args), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .uncast = true,
    .emit = emit,
    .to_config = keel_embedding_config,
    .low_rank = keel_embedding_low_rank,
};
