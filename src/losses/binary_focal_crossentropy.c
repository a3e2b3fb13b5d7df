/* Binary focal cross-entropy (Lin et al. 2017): the binary cross-entropy c of an element times
 * (1 - q)^gamma, q = t p + (1 - t)(1 - p) being how right the prediction is; balanced, that times
 * t alpha + (1 - t)(1 - alpha). The mean over the last axis.
 *
 * c of logits and of probabilities is that of binary_crossentropy.c; smoothing comes before all. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "losses/each.h"
#include "ops/all.h"

typedef keel_binary_focal args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_BOOL(args_t, apply_class_balancing, "false",
              "weigh targets of 1 by alpha, of 0 by the rest"),
    KEEL_FLOAT(args_t, alpha, "0.25", 0, 1, "weight of targets of 1, where classes are balanced"),
    KEEL_FLOAT(args_t, gamma, "2.0", 0, 1e30, "how little right predictions count"),
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_FLOAT(args_t, label_smoothing, "0.0", 0, 1, "move targets toward one half"),
    KEEL_SCORE_AXIS(args_t),
    { 0 },
};

#define REAL_FILE "losses/binary_focal_crossentropy.c"
#include "ops/real.h"

const keel_loss keel_loss_binary_focal_crossentropy = {
    .type = {
        .name = "BinaryFocalCrossentropy",
        .module = "keras.losses",
        .help = "binary cross-entropy in which predictions that are right count little",
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
    const REAL gamma = (REAL)a->gamma, alpha = (REAL)a->alpha;
    const REAL t = y * (REAL)(1 - a->label_smoothing) + (REAL)(a->label_smoothing / 2);
    REAL p = x, by_x = 0;
    const REAL c =
        a->from_logits ? REAL_(of_logit)(x, t, &by_x, &p) : REAL_(of_probability)(x, t, &by_x);
    const REAL wrong = 1 - (t * p + (1 - t) * (1 - p)), factor = pow(wrong, gamma);
    const REAL p_by_x = a->from_logits ? p * (1 - p) : 1;
    const REAL wrong_by_x = (1 - 2 * t) * p_by_x;
    const REAL factor_by_x = gamma == 0 ? 0 : gamma * pow(wrong, gamma - 1) * wrong_by_x;
    const REAL weight = a->apply_class_balancing ? t * alpha + (1 - t) * (1 - alpha) : 1;
    *slope = weight * (factor * by_x + factor_by_x * c);
    return weight * factor * c;
}

KEEL_LOSS_OF_EACH(of)
#endif
