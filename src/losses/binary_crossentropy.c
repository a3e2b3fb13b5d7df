/* Binary cross-entropy: l = mean over the last axis of -(t log p + (1 - t) log(1 - p)).
 *
 * For logits z: max(z, 0) - z t + log(1 + exp(-|z|)), finite for every z; dl/dz = sigmoid(z) - t.
 * For probabilities: p is clipped to [epsilon, 1 - epsilon]; clipped elements have no gradient.
 * Label smoothing: t (1 - s) + s / 2. All as in Keras with TensorFlow. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "losses/each.h"
#include "ops/all.h"
#include <tgmath.h>

typedef keel_crossentropy args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_FLOAT(args_t, label_smoothing, "0.0", 0, 1, "moves targets toward one half"),
    KEEL_SCORE_AXIS(args_t),
    { 0 },
};

#define REAL_FILE "losses/binary_crossentropy.c"
#include "ops/real.h"

const keel_loss keel_loss_binary_crossentropy = {
    .type = {
        .name = "BinaryCrossentropy",
        .alias = "bce|BCE",
        .module = "keras.losses",
        .help = "cross-entropy for independent binary targets",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .axis_offset = offsetof(args_t, axis),
    .of = REALS(of),
    .logits_of = &keel_op_sigmoid,
    .from_logits_offset = offsetof(args_t, from_logits),
};

#else
#include "losses/binary_real.h"

static REAL REAL_(at)(const args_t *a, REAL x, REAL y, REAL *slope)
{
    const REAL t = y * (REAL)(1 - a->label_smoothing) + (REAL)(a->label_smoothing / 2);
    REAL p;
    return a->from_logits ? REAL_(of_logit)(x, t, slope, &p) : REAL_(of_probability)(x, t, slope);
}

KEEL_LOSS_OF_EACH(of)
#endif
