/* See _embedding.h. */
#include "layers/core/_embedding.h"
#include "ops/args.h"

keel_status keel_embedding_table(keel_emit *e, const keel_embedding_args *a, bool frozen,
                                 keel_weights *w)
{
    const keel_weight_decl table = { .name = "embeddings",
                                     .shape = KEEL_SHAPE(a->input_dim, a->output_dim),
                                     .initializer = &a->embeddings_initializer,
                                     .regularizer = &a->embeddings_regularizer,
                                     .constraint = &a->embeddings_constraint,
                                     .state = frozen };
    return keel_emit_weight(e, &table, w);
}

keel_status keel_embedding_rows(keel_emit *e, const keel_embedding_args *a, const keel_weights *w)
{
    const keel_not_equal_to_args zero = { .value = 0 };
    e->out_mask[0] = KEEL_MASK_NONE;
    if (a->mask_zero)
        KEEL_TRY(keel_emit_on(e, &keel_op_not_equal_to, &zero, e->in, 1, e->out_mask));
    return keel_emit_weighted(e, &keel_op_gather, NULL, e->in[0], w, e->out);
}
