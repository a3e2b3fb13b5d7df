/* Adadelta (Zeiler 2012), in the order of operations of Keras's update_step:
 * a = rho a + (1 - rho) g^2;  d = sqrt(x + eps) g / sqrt(a + eps);  x = rho x + (1 - rho) d^2;
 * w -= lr d. */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double rho, epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, rho, "0.95", 0, 1, "how much of the means is kept"),
    KEEL_FLOAT(args_t, epsilon, "1e-7", 0, 1e30, "added to the mean squares"),
    { 0 },
};

#define REAL_FILE "optimizers/adadelta.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_adadelta = {
    .type = {
        .name = "Adadelta",
        .alias = "adadelta",
        .module = "keras.optimizers",
        .help = "steps whose size follows from the steps before them",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .alike = { "accumulated_grad", "accumulated_delta_var" },
    .apply = REALS(apply),
    .move = REALS(move),
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = KEEL_RULE_ADADELTA;
    out->number.rho = (REAL)a->rho;
    out->number.one_less_rho = (REAL)(1 - a->rho);
    out->number.epsilon = (REAL)a->epsilon;
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
