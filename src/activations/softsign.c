/* Softsign: y = x / (1 + |x|). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_softsign = {
    .type = {
        .name = "softsign",
        .alias = "softsign",
        .module = "keras.activations",
        .help = "x / (1 + |x|)",
    },
    .op = &keel_op_softsign,
};
