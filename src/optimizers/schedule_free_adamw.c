/* Schedule-free AdamW (Defazio et al. 2024). The weight y lies between z, to which gradients are
 * applied (Keras's slot "momentum"), and x, the mean of all z so far, which is not stored:
 * v += (g^2 - v) (1 - b2);  x = (y - (1 - b1) z) / b1;  z -= lr g / (sqrt(v / (1 - b2^t)) + eps);
 * x += (z - x) / t;  y = (1 - b1) z + b1 x.
 * Keras on TensorFlow takes x by the z after the step, since the old one is a reference there, and
 * lets fit begin with z = 0. Here it is as in the paper, and in Keras on JAX. */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double beta_1, beta_2, epsilon;
    int64_t warmup_steps;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.0025", "null"),
    KEEL_FLOAT(args_t, beta_1, "0.9", 1e-30, 1, "how much of the weight is the mean"),
    KEEL_FLOAT(args_t, beta_2, "0.999", 0, 1, "how much of the mean square is kept"),
    KEEL_FLOAT(args_t, epsilon, "1e-08", 0, 1e30, "added to the root"),
    KEEL_INT(args_t, warmup_steps, "0", 0, 1e15, "steps in which the rate rises from 0"),
    { 0 },
};

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "momentum", "velocity" };
    (void)args, (void)w;
    KEEL_TRY(keel_slots_alike(out, 2, names));
    out->at[0].first_is_weight = true;
    return KEEL_OK;
}

#define REAL_FILE "optimizers/schedule_free_adamw.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_schedule_free_adamw = {
    .type = {
        .name = "ScheduleFreeAdamW",
        .module = "keras.optimizers",
        .help = "Adam whose weights lean on the mean of all steps, in place of a schedule",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .apply = REALS(apply),
    .move = REALS(move),
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    const REAL t = (REAL)u->iteration, share = 1 / t, rate = (REAL)u->learning_rate;
    const REAL warm = a->warmup_steps > 0 ? t / (REAL)a->warmup_steps : 1;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = KEEL_RULE_SCHEDULE_FREE;
    out->number.alpha = warm < 1 ? rate * warm : rate;
    out->number.beta_1 = (REAL)a->beta_1;
    out->number.one_less_beta_1 = 1 - (REAL)a->beta_1;
    out->number.one_less_beta_2 = 1 - (REAL)a->beta_2;
    out->number.left = 1 - REAL_POW((REAL)a->beta_2, t);
    out->number.epsilon = (REAL)a->epsilon;
    out->number.share = share;
    out->number.one_less_share = 1 - share;
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
