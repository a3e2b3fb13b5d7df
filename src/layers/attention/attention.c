/* Attention with the products of query and key as scores (Luong et al. 2015), or the sums of
 * tanh(query + key), which Keras calls "concat". */
#include "layers/attention/_attention.h"

enum { DOT, CONCAT };

static const keel_field fields[] = {
    KEEL_BOOL(keel_attention_args, use_scale, "false", "learn a factor of the scores"),
    KEEL_CHOICE(keel_attention_args, score_mode, "\"dot\"", "dot|concat",
                "products of query and key, or the tanh of their sums"),
    KEEL_FLOAT(keel_attention_args, dropout, "0.0", 0, 1,
               "the fraction of weights that is dropped"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

typedef struct factors {
    keel_weights scale, concat;
} factors;

static keel_status declare(keel_emit *e, factors *f)
{
    const keel_attention_args *a = e->args;
    const keel_object ones = { keel_initializer_find("Ones"), NULL };
    const keel_weight_decl scale = { .name = "scale", .initializer = &ones };
    const keel_weight_decl concat = { .name = "concat_score_weight", .initializer = &ones };
    if (a->use_scale) KEEL_TRY(keel_emit_weight(e, &scale, &f->scale));
    return a->score_mode == CONCAT ? keel_emit_weight(e, &concat, &f->concat) : KEEL_OK;
}

static keel_status scores(keel_emit *e, keel_value query, keel_value key, keel_value *out)
{
    static const keel_permute_args turned = { .from = { 1, 0 } };
    const keel_attention_args *a = e->args;
    factors f = { 0 };
    KEEL_TRY(declare(e, &f));
    if (a->score_mode == CONCAT) {
        KEEL_TRY(keel_attention_pairs(e, query, key, out));
        if (a->use_scale) KEEL_TRY(keel_attention_scale(e, &f.scale, out));
        KEEL_TRY(keel_emit_on(e, &keel_op_tanh, NULL, out, 1, out));
        KEEL_TRY(keel_attention_sum(e, *out, out));
        return keel_attention_scale(e, &f.concat, out);
    }
    KEEL_TRY(keel_emit_on(e, &keel_op_permute, &turned, &key, 1, &key));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ query, key }, 2, out));
    return a->use_scale ? keel_attention_scale(e, &f.scale, out) : KEEL_OK;
}

static keel_status scaled(keel_emit *e, keel_value *query)
{
    const keel_attention_args *a = e->args;
    factors f = { 0 };
    KEEL_TRY(declare(e, &f));
    return a->use_scale ? keel_attention_scale(e, &f.scale, query) : KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const keel_attention_args *a = e->args;
    return keel_attention_emit(e, scores, a->score_mode == DOT ? scaled : NULL);
}

const keel_layer keel_layer_attention = {
    .type = { KEEL_LAYER_HEAD("Attention", "Each step of the query is a weighted sum of values."),
              .args_size = sizeof(keel_attention_args), .fields = fields },
    .min_inputs = 2,
    .max_inputs = -1,
    .by_arguments = true,
    .by_chance = true,
    .supports_masking = true,
    .masks_at_run = true,
    .emit = emit,
};
