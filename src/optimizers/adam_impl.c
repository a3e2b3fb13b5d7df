/* Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017), which in Keras differ only in
 * their default weight decay; what they do to an element is in rules.h. alpha in float32 matters:
 * 1 - beta_2^t loses five digits at t = 1. alpha = lr sqrt(1 - b2^t) / (1 - b1^t). */
#ifndef REAL
#include "optimizers/adam_impl.h"
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

keel_status keel_adam_slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "momentum", "velocity", "velocity_hat" };
    (void)w;
    KEEL_TRY(keel_slots_alike(out, ((const keel_adam *)args)->amsgrad ? 3 : 2, names));
    out->at[2].group = 1;
    return KEEL_OK;
}

#define REAL_FILE "optimizers/adam_impl.c"
#include "ops/real.h"

#else
void REAL_(keel_adam_move)(const keel_update *u, keel_device_move *out)
{
    const keel_adam *a = u->args;
    const REAL step = (REAL)u->iteration, rate = (REAL)u->learning_rate;
    const REAL left_1 = 1 - REAL_POW((REAL)a->beta_1, step);
    const REAL left_2 = 1 - REAL_POW((REAL)a->beta_2, step);
    const REAL root = REAL_SQRT(left_2);
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = a->amsgrad ? KEEL_RULE_AMSGRAD : KEEL_RULE_ADAM;
    out->number.alpha = rate * root / left_1;
    out->number.one_less_beta_1 = (REAL)(1 - a->beta_1);
    out->number.one_less_beta_2 = (REAL)(1 - a->beta_2);
    out->number.epsilon = (REAL)a->epsilon;
}

void REAL_(keel_adam_apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(keel_adam_move)(u, &m);
    keel_move(&m);
}
#endif
