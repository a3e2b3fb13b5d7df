/* True where fewer than k predictions are above that of the target, which must be one of them. */
#include "layers/operations/_values.h"

typedef struct args_t {
    int64_t k;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, k, NULL, 1, 1e9, "how many count as the top"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_axis_args last = { .axis = -1 };
    const keel_shape one = KEEL_SHAPE(1);
    keel_operand targets, predictions;
    keel_value target, own, above, finite, there;
    KEEL_TRY(keel_operand_at(e, 0, "targets", &targets));
    KEEL_TRY(keel_operand_at(e, 1, "predictions", &predictions));
    if (targets.value < 0 || predictions.value < 0 ||
        keel_value_shape(e, targets.value)->rank != 0 ||
        keel_value_shape(e, predictions.value)->rank != 1)
        return keel_fail(KEEL_EUNSUP, "it needs a target and a list of predictions of each row");
    const keel_value p = predictions.value;
    KEEL_TRY(keel_emit_view(e, &one, targets.value, &target));
    KEEL_TRY(keel_emit_on(e, &keel_op_take_along, &last, (keel_value[]){ p, target }, 2, &own));
    KEEL_TRY(keel_emit_compared(e, KEEL_GREATER, p, own, &above));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, above, 0, false, &above));
    KEEL_TRY(keel_emit_is(e, KEEL_LESS, above, (double)((const args_t *)e->args)->k, &above));
    /* false if a prediction is not finite, whose difference to itself is NaN */
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, p, p, &finite));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, finite, 0, false, &finite));
    KEEL_TRY(keel_emit_is(e, KEEL_EQUAL, finite, 0, &finite));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, above, finite, &above));
    KEEL_TRY(
        keel_emit_is(e, KEEL_LESS, targets.value, (double)keel_value_shape(e, p)->dim[0], &there));
    return keel_emit_pair(e, &keel_op_multiply, above, there, e->out);
}

KEEL_ARGS_OPERATION(ops_in_top_k, "InTopK", "math", 2, "Is the target among the first k?",
                    .whole = KEEL_WHOLE_ALWAYS, .places = true)
