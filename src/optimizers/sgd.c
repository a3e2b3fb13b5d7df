/* Stochastic gradient descent: what of rules.h it is. */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double momentum;
    bool nesterov;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.01", "null"),
    KEEL_FLOAT(args_t, momentum, "0.0", 0, 1, "how much of the last move is kept"),
    KEEL_BOOL(args_t, nesterov, "false", "look ahead by the momentum"),
    { 0 },
};

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "momentum" };
    (void)w;
    return keel_slots_alike(out, ((const args_t *)args)->momentum == 0 ? 0 : 1, names);
}

static double plain_momentum(const void *args)
{
    const args_t *a = args;
    return a->nesterov || keel_decay(&a->common) != 0 ? 0 : a->momentum;
}

static bool rests(const void *args)
{
    const args_t *a = args;
    return a->momentum == 0 && keel_decay(&a->common) == 0;
}

#define REAL_FILE "optimizers/sgd.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_sgd = {
    .type = {
        .name = "SGD",
        .module = "keras.optimizers",
        .help = "gradient descent, with momentum where asked",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .plain_momentum = plain_momentum,
    .rests = rests,
    .apply = REALS(apply),
    .move = REALS(move),
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->number.momentum = (REAL)a->momentum;
    if (a->momentum == 0)
        out->rule = KEEL_RULE_PLAIN;
    else if (a->nesterov)
        out->rule = KEEL_RULE_NESTEROV;
    else if (out->number.decay == 0 && isinf(out->number.clip))
        out->rule = KEEL_RULE_MOMENTUM_ONLY;
    else
        out->rule = KEEL_RULE_MOMENTUM;
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
