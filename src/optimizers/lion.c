/* Lion (Chen et al. 2023): w -= lr sign(m b1 + g (1 - b1));  m = m b2 + g (1 - b2). */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double beta_1, beta_2;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, beta_1, "0.9", 1e-30, 1, "how much of the mean the step keeps"),
    KEEL_FLOAT(args_t, beta_2, "0.99", 0, 1, "how much of the mean gradient is kept"),
    { 0 },
};

#define REAL_FILE "optimizers/lion.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_lion = {
    .type = {
        .name = "Lion",
        .alias = "lion",
        .module = "keras.optimizers",
        .help = "steps of one size, by the sign of the mean gradient",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .alike = { "momentum" },
    .apply = REALS(apply),
    .move = REALS(move),
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = KEEL_RULE_LION;
    out->number.beta_1 = (REAL)a->beta_1;
    out->number.one_less_beta_1 = 1 - (REAL)a->beta_1;
    out->number.beta_2 = (REAL)a->beta_2;
    out->number.one_less_beta_2 = 1 - (REAL)a->beta_2;
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
