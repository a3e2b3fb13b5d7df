/* Attention with the scores sum(w tanh(query + key)) over features, with trained weights w
 * (Bahdanau et al. 2015). */
#include "layers/attention/_attention.h"

static const keel_field fields[] = {
    KEEL_BOOL(keel_attention_args, use_scale, "true", "learn a factor of each feature"),
    KEEL_FLOAT(keel_attention_args, dropout, "0.0", 0, 1,
               "the fraction of weights that is dropped"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

static keel_status scores(keel_emit *e, keel_value query, keel_value key, keel_value *out)
{
    const keel_attention_args *a = e->args;
    keel_fan_args fans = { { KEEL_INT_NULL }, { .count = -1 }, { .count = -1 } };
    const keel_object glorot = { keel_initializer_find("GlorotUniform"), &fans };
    const keel_weight_decl scale = {
        .name = "scale",
        .shape = KEEL_SHAPE(keel_graph_spec(e->graph, query)->shape.dim[1]),
        .initializer = &glorot,
    };
    keel_weights w = { 0 };
    if (a->use_scale) KEEL_TRY(keel_emit_weight(e, &scale, &w));
    KEEL_TRY(keel_attention_pairs(e, query, key, out));
    KEEL_TRY(keel_emit_on(e, &keel_op_tanh, NULL, out, 1, out));
    if (a->use_scale) KEEL_TRY(keel_attention_scale(e, &w, out));
    return keel_attention_sum(e, *out, out);
}

static keel_status emit(keel_emit *e)
{
    return keel_attention_emit(e, scores, NULL);
}

const keel_layer keel_layer_additive_attention = {
    .type = { KEEL_LAYER_HEAD(
                  "AdditiveAttention",
                  "Each step of the query is a sum of values, weighted by a learned function."),
              .args_size = sizeof(keel_attention_args), .fields = fields },
    .min_inputs = 2,
    .max_inputs = -1,
    .by_arguments = true,
    .by_chance = true,
    .supports_masking = true,
    .masks_at_run = true,
    .emit = emit,
};
