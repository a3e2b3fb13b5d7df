/* Adagrad (Duchi et al. 2011): a += g^2;  w -= lr g / sqrt(a + eps). */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double initial_accumulator_value, epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, initial_accumulator_value, "0.1", 0, 1e30, "what the sum begins with"),
    KEEL_FLOAT(args_t, epsilon, "1e-7", 0, 1e30, "added to the sum of squares"),
    { 0 },
};

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "accumulator" };
    (void)w;
    keel_slots_alike(out, 1, names);
    out->at[0].first = ((const args_t *)args)->initial_accumulator_value;
    return KEEL_OK;
}

static bool rests(const void *args)
{
    return keel_decay(&((const args_t *)args)->common) == 0;
}

#define REAL_FILE "optimizers/adagrad.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_adagrad = {
    .type = {
        .name = "Adagrad",
        .alias = "adagrad",
        .module = "keras.optimizers",
        .help = "steps of the gradient over the root of the sum of its squares",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .rests = rests,
    .apply = REALS(apply),
    .move = REALS(move),
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = KEEL_RULE_ADAGRAD;
    out->number.epsilon = (REAL)a->epsilon;
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
