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

/* Adds 0, whose gradient makes that of the logits z softmax(z) - t also where the target does not
 * sum to 1, as in TensorFlow's kernel and the loss CategoricalCrossentropy: (1 - sum t) (d - d'),
 * where d' passes no gradient, and d = z_0 - log softmax(z)_0 = log sum exp z. */
static keel_status as_tensorflow(keel_emit *e, keel_value t, keel_value z, keel_value logarithms,
                                 int64_t axis, keel_value *y)
{
    keel_value first[2], d, stopped, missing;
    KEEL_TRY(keel_emit_part(e, z, axis, 0, 1, &first[0]));
    KEEL_TRY(keel_emit_part(e, logarithms, axis, 0, 1, &first[1]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, first[0], first[1], &d));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, d, axis, false, &d));
    KEEL_TRY(keel_emit_each(e, &keel_op_stop_gradient, d, &stopped));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, d, stopped, &d));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, t, axis, false, &missing));
    KEEL_TRY(keel_emit_each(e, &keel_op_stop_gradient, missing, &missing));
    KEEL_TRY(keel_emit_scaled(e, missing, -1, 1, &missing));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, missing, d, &d));
    return keel_emit_pair(e, &keel_op_plus, *y, d, y);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value x[2], logs, y;
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    KEEL_TRY(keel_two_values(e, "target", "output", x));
    if (a->from_logits)
        KEEL_TRY(keel_emit_along(e, &keel_op_log_softmax, x[1], axis, &logs));
    else
        KEEL_TRY(logarithms(e, x[1], axis, &logs));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x[0], logs, &y));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, y, axis, false, &y));
    KEEL_TRY(keel_emit_scaled(e, y, -1, 0, &y));
    if (a->from_logits && e->graph->backward)
        KEEL_TRY(as_tensorflow(e, x[0], x[1], logs, axis, &y));
    *e->out = y;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_categorical_crossentropy, "CategoricalCrossentropy", "nn", 2,
                    "The cross-entropy of probabilities and those of the target.")
