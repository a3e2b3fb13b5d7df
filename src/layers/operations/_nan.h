/* Operations over or along dims that leave out what is no number. */
#ifndef KEEL_LAYERS_OPERATIONS_NAN_H
#define KEEL_LAYERS_OPERATIONS_NAN_H
#include "layers/operations/_values.h"

/* x with `number` in place of NaN. */
static inline keel_status emit_numbers(keel_emit *e, double number, keel_value *out)
{
    keel_value none;
    KEEL_TRY(keel_emit_no_number(e, e->in[0], &none));
    return keel_emit_choice(e, none, KEEL_OF_NUMBER(number), KEEL_OF_VALUE(e->in[0]), out);
}

/* The operation on that. It has the args of the file's operation. */
static inline keel_status emit_without_nan(keel_emit *e, const keel_layer *operation, double number)
{
    keel_value x;
    KEEL_TRY(emit_numbers(e, number, &x));
    return keel_emit_instead(e, operation, x);
}

/* The same, and `otherwise` where all are NaN. */
static inline keel_status emit_unless_nan(keel_emit *e, const keel_layer *operation, double number,
                                          double otherwise)
{
    extern const keel_layer keel_layer_ops_amin;
    keel_value none, all, y;
    KEEL_TRY(keel_emit_no_number(e, e->in[0], &none));
    KEEL_TRY(keel_emit_instead(e, &keel_layer_ops_amin, none));
    all = e->out[0];
    KEEL_TRY(emit_without_nan(e, operation, number));
    y = e->out[0];
    return keel_emit_choice(e, all, KEEL_OF_NUMBER(otherwise), KEEL_OF_VALUE(y), e->out);
}

/* How many are numbers. */
static inline keel_status emit_numbers_count(keel_emit *e, keel_reduce_args over, keel_value *out)
{
    const keel_compare_args is_one = { .is = KEEL_EQUAL };
    keel_value one;
    KEEL_TRY(
        keel_emit_on(e, &keel_op_compare, &is_one, (keel_value[]){ e->in[0], e->in[0] }, 2, &one));
    over.to = KEEL_REDUCE_SUM;
    return keel_emit_on(e, &keel_op_reduce, &over, &one, 1, out);
}

/* The mean square of what is off the mean. */
static inline keel_status emit_nan_variance(keel_emit *e, keel_value *out)
{
    const keel_reduction *a = e->args;
    keel_reduce_args over = { .to = KEEL_REDUCE_SUM, .keepdims = true };
    keel_value none, x, mean, count;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &over));
    KEEL_TRY(keel_emit_no_number(e, e->in[0], &none));
    KEEL_TRY(keel_emit_choice(e, none, KEEL_OF_NUMBER(0), KEEL_OF_VALUE(e->in[0]), &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &over, &x, 1, &mean));
    KEEL_TRY(emit_numbers_count(e, over, &count));
    KEEL_TRY(keel_emit_pair(e, &keel_op_divide, mean, count, &mean));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x, mean, &x));
    KEEL_TRY(keel_emit_choice(e, none, KEEL_OF_NUMBER(0), KEEL_OF_VALUE(x), &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_square, x, &x));
    over.keepdims = a->keepdims;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &over, &x, 1, &x));
    if (!a->keepdims) KEEL_TRY(keel_emit_view(e, keel_value_shape(e, x), count, &count));
    return keel_emit_pair(e, &keel_op_divide, x, count, out);
}

#endif
