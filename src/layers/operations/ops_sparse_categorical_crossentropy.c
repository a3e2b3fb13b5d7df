/* Less the logarithm of the probability of the class that the target names. Probabilities that do
 * not sum to 1 are divided by their sum, as Keras's softmax of their logarithms does. */
#include "layers/operations/_values.h"

typedef struct args_t {
    bool from_logits;
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, from_logits, "false", "the outputs are logits"),
    KEEL_INT(args_t, axis, "-1", -7, 7, "of the classes; only the last is supported"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_axis_args last = { .axis = -1 };
    keel_operand target, output;
    KEEL_TRY(keel_operand_at(e, 0, "target", &target));
    KEEL_TRY(keel_operand_at(e, 1, "output", &output));
    if (target.value < 0 || output.value < 0)
        return keel_fail(KEEL_EUNSUP, "it needs targets and outputs of the model");
    keel_value x = output.value, at;
    const keel_shape shape = *keel_value_shape(e, x);
    if (shape.rank < 1 || (a->axis != -1 && a->axis != shape.rank))
        return keel_fail(KEEL_EUNSUP, "axis %lld: the classes must be the last dim",
                         (long long)a->axis);
    const keel_shape one =
        keel_shape_with_one(keel_shape_without(shape, shape.rank - 1), shape.rank - 1);
    KEEL_TRY(keel_emit_view(e, &one, target.value, &at));
    if (!a->from_logits) {
        KEEL_TRY(keel_emit_with(e, &keel_op_maximum, x, 1e-7, &x)); /* Keras's epsilon */
        KEEL_TRY(keel_emit_with(e, &keel_op_minimum, x, 1 - 1e-7, &x));
        KEEL_TRY(keel_emit_each(e, &keel_op_log, x, &x));
    }
    KEEL_TRY(keel_emit_along(e, &keel_op_log_softmax, x, shape.rank - 1, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_take_along, &last, (keel_value[]){ x, at }, 2, &x));
    const keel_shape out = keel_shape_without(shape, shape.rank - 1);
    KEEL_TRY(keel_emit_view(e, &out, x, &x));
    return keel_emit_scaled(e, x, -1, 0, e->out);
}

KEEL_ARGS_OPERATION(ops_sparse_categorical_crossentropy, "SparseCategoricalCrossentropy", "nn", 2,
                    "Less the logarithm of the probability of the target.")
