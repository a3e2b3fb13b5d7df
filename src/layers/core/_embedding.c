/* See _embedding.h. */
#include "layers/core/_embedding.h"
#include "ops/args.h"

keel_status keel_embedding_declare(keel_emit *e, const keel_embedding_args *a, keel_embedding *w)
{
    const bool narrow = keel_low_rank_given(&a->low_rank);
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
    return narrow ? keel_low_rank_declare(e, &a->low_rank, &table, 1, w->pair) : KEEL_OK;
}

keel_status keel_embedding_rows(keel_emit *e, const keel_embedding_args *a, const keel_embedding *w)
{
    const keel_not_equal_to_args zero = { .value = 0 };
    e->out_mask[0] = KEEL_MASK_NONE;
    if (a->mask_zero)
        KEEL_TRY(keel_emit_on(e, &keel_op_not_equal_to, &zero, e->in, 1, e->out_mask));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_gather, NULL, e->in[0], &w->table, e->out));
    if (!keel_low_rank_given(&a->low_rank)) return KEEL_OK;
    return keel_low_rank_add(e, &a->low_rank, &keel_op_gather, w->pair, e->in[0], e->out);
}

double keel_embedding_low_rank(const void *args)
{
    return keel_low_rank_scale(&((const keel_embedding_args *)args)->low_rank);
}

keel_status keel_embedding_config(const void *args, json_t *config)
{
    return keel_low_rank_config(&((const keel_embedding_args *)args)->low_rank, config);
}
