/* The cross-entropy of each probability, or logit, and its target. */
#include "layers/operations/_values.h"

typedef struct args_t {
    bool from_logits;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, from_logits, "false", "the outputs are logits"),
    { 0 },
};

/* softplus(x) - x t = -t log p - (1 - t) log(1 - p) with p = sigmoid(x) */
static keel_status of_logits(keel_emit *e, keel_value t, keel_value x, keel_value *out)
{
    keel_value y;
    KEEL_TRY(keel_emit_each(e, &keel_op_softplus, x, &y));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x, t, &x));
    return keel_emit_pair(e, &keel_op_subtract, y, x, out);
}

static keel_status of_probabilities(keel_emit *e, keel_value t, keel_value p, keel_value *out)
{
    const double least = 1e-7; /* Keras's epsilon */
    keel_value x[2] = { t, -1 }, log_p[2];
    KEEL_TRY(keel_emit_with(e, &keel_op_maximum, p, least, &p));
    KEEL_TRY(keel_emit_with(e, &keel_op_minimum, p, 1 - least, &p));
    KEEL_TRY(keel_emit_scaled(e, t, -1, 1, &x[1]));
    for (int i = 0; i < 2; i++) {
        if (i == 1) KEEL_TRY(keel_emit_scaled(e, p, -1, 1, &p));
        KEEL_TRY(keel_emit_each(e, &keel_op_log, p, &log_p[i]));
        KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x[i], log_p[i], &x[i]));
    }
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, x[0], x[1], out));
    return keel_emit_scaled(e, *out, -1, 0, out);
}

static keel_status emit(keel_emit *e)
{
    keel_value x[2];
    KEEL_TRY(keel_two_values(e, "target", "output", x));
    return (((const args_t *)e->args)->from_logits ? of_logits : of_probabilities)(e, x[0], x[1],
                                                                                   e->out);
}

KEEL_ARGS_OPERATION(ops_binary_crossentropy, "BinaryCrossentropy", "nn", 2,
                    "The cross-entropy of probabilities and targets.")
