/* The cross-entropy of the probabilities, or logits, along an axis and those of the target. */
#include "layers/operations/_values.h"

typedef struct args_t {
    bool from_logits;
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, from_logits, "false", "the outputs are logits"),
    KEEL_INT(args_t, axis, "-1", -7, 7, "of the classes, the batch is 0"),
    { 0 },
};

/* The logarithms of the probabilities, which are first made to sum to 1. */
static keel_status logarithms(keel_emit *e, keel_value p, int64_t axis, keel_value *out)
{
    const double least = 1e-7; /* Keras's epsilon */
    keel_value sum;
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, p, axis, true, &sum));
    KEEL_TRY(keel_emit_pair(e, &keel_op_divide, p, sum, &p));
    KEEL_TRY(keel_emit_with(e, &keel_op_maximum, p, least, &p));
    KEEL_TRY(keel_emit_with(e, &keel_op_minimum, p, 1 - least, &p));
    return keel_emit_each(e, &keel_op_log, p, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value x[2], y;
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    KEEL_TRY(keel_two_values(e, "target", "output", x));
    if (a->from_logits)
        KEEL_TRY(keel_emit_along(e, &keel_op_log_softmax, x[1], axis, &y));
    else
        KEEL_TRY(logarithms(e, x[1], axis, &y));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x[0], y, &y));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, y, axis, false, &y));
    return keel_emit_scaled(e, y, -1, 0, e->out);
}

KEEL_ARGS_OPERATION(ops_categorical_crossentropy, "CategoricalCrossentropy", "nn", 2,
                    "The cross-entropy of probabilities and those of the target.")
