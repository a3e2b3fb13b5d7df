/* What Attention and AdditiveAttention share: the arguments of their calls, masks, and the sum of
 * values. Rows are (time, features); query, value and key are used without projections. */
#ifndef KEEL_LAYERS_ATTENTION_ATTENTION_H
#define KEEL_LAYERS_ATTENTION_ATTENTION_H
#include "layers/layer.h"
#include "ops/args.h"

typedef struct keel_attention_args {
    bool use_scale;
    int score_mode; /* AdditiveAttention has none */
    double dropout;
} keel_attention_args;

/* [T, S] of query [T, C] and key [S, C]. */
typedef keel_status (*keel_scores)(keel_emit *e, keel_value query, keel_value key, keel_value *out);

/* Multiplies the query so that its products with the key are the scores. */
typedef keel_status (*keel_scaled)(keel_emit *e, keel_value *query);

/* query + key for each pair of steps, [T, S, C]. */
keel_status keel_attention_pairs(keel_emit *e, keel_value query, keel_value key, keel_value *out);
/* The sum over C of [T, S, C]. */
keel_status keel_attention_sum(keel_emit *e, keel_value pairs, keel_value *out);
/* Multiplies *x by a weight, which it declares. */
keel_status keel_attention_scale(keel_emit *e, const keel_weights *w, keel_value *x);

/* The emit of such a layer. With `scaled` the scores are in memory only if a call asks for them;
 * NULL: they are no products. */
keel_status keel_attention_emit(keel_emit *e, keel_scores scores, keel_scaled scaled);

#endif
