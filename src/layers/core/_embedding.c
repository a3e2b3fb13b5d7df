/* See _embedding.h. */
#include "layers/core/_embedding.h"
#include "ops/args.h"

keel_status keel_embedding_declare(keel_emit *e, const keel_embedding_args *a, keel_embedding *w)
{
    const keel_low_rank product = KEEL_LORA_RANK(a->lora_rank);
    const bool narrow = keel_low_rank_given(&product);
    const keel_weight_decl table = { .name = "embeddings",
                                     .shape = KEEL_SHAPE(a->input_dim, a->output_dim),
                                     .initializer = &a->embeddings_initializer,
                                     .regularizer = &a->embeddings_regularizer,
                                     .constraint = &a->embeddings_constraint,
                                     .state = narrow };
    if (narrow && a->embeddings_constraint.type)
        return keel_fail(KEEL_EUNSUP,
                         "lora_rank with an embeddings_constraint: Keras refuses it, too");
    KEEL_TRY(keel_emit_weight(e, &table, &w->table));
    return narrow ? keel_low_rank_declare(e, &product, &table, 1, w->pair) : KEEL_OK;
}

keel_status keel_embedding_rows(keel_emit *e, const keel_embedding_args *a, const keel_embedding *w)
{
    const keel_low_rank product = KEEL_LORA_RANK(a->lora_rank);
    const keel_not_equal_to_args zero = { .value = 0 };
    e->out_mask[0] = KEEL_MASK_NONE;
    if (a->mask_zero)
        KEEL_TRY(keel_emit_on(e, &keel_op_not_equal_to, &zero, e->in, 1, e->out_mask));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_gather, NULL, e->in[0], &w->table, e->out));
    if (!keel_low_rank_given(&product)) return KEEL_OK;
    return keel_low_rank_add(e, &product, &keel_op_gather, w->pair, e->in[0], e->out);
}

double keel_embedding_low_rank(const void *args)
{
    const keel_low_rank product = KEEL_LORA_RANK(((const keel_embedding_args *)args)->lora_rank);
    return keel_low_rank_scale(&product);
}

keel_status keel_embedding_config(const void *args, json_t *config)
{
    const keel_low_rank product = KEEL_LORA_RANK(((const keel_embedding_args *)args)->lora_rank);
    return keel_low_rank_config(&product, config);
}
