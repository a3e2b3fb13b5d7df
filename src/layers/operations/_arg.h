/* Where the largest or the smallest element is: what keras.ops.argmax and argmin share. */
#ifndef KEEL_LAYERS_OPERATIONS_ARG_H
#define KEEL_LAYERS_OPERATIONS_ARG_H
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    { 0 },
};

/* Of the smallest: the largest of the values with their signs turned, those of zeros, too, which
 * the sum with -0 keeps. */
static inline keel_status emit_place(keel_emit *e, bool smallest)
{
    const bool whole = keel_emit_is_whole(e, 0); /* then there is one zero, 0 + -0 */
    const keel_rescaling_args in_order = { .scale = smallest ? -1 : 1, .offset = whole ? 0 : -0.0 };
    const args_t *a = e->args;
    keel_axis_args op;
    keel_value y = e->in[0];
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    if (smallest || whole) KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &in_order, &y, 1, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_argmax, &op, &y, 1, &y));
    if (!a->keepdims) {
        e->out[0] = y;
        return KEEL_OK;
    }
    keel_shape one = keel_emit_in(e, 0)->shape;
    one.dim[op.axis] = 1;
    return keel_emit_view(e, &one, y, e->out);
}

#define KEEL_ARG_OPERATION(stem, class_, smallest_, help_)                                         \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return emit_place(e, smallest_);                                                           \
    }                                                                                              \
    const keel_layer keel_layer_##stem = {                                                         \
        .type = { KEEL_OPERATION_HEAD(class_, "numpy", help_), .args_size = sizeof(args_t),        \
                  .fields = fields },                                                              \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .operation = true,                                                                         \
        .places = true,                                                                            \
        .whole = KEEL_WHOLE_ALWAYS,                                                                \
        .emit = emit,                                                                              \
    };

#endif
