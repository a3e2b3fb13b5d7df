/* Probabilities along one dim, or over several together; with a mask only the places that count
 * have one, and the others are 0. */
#include "layers/operations/_values.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "-1", -7, 7, "which dims sum to one, counted with the batch"),
    { 0 },
};

/* exp(x - max) / sum exp(x - max) over all these dims. */
static keel_status over_several(keel_emit *e, keel_value x, keel_value *out)
{
    const args_t *a = e->args;
    keel_reduce_args over = { .to = KEEL_REDUCE_MAX, .keepdims = true };
    keel_value of;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &over));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &over, &x, 1, &of));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x, of, &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_exponential, x, &x));
    over.to = KEEL_REDUCE_SUM;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &over, &x, 1, &of));
    return keel_emit_pair(e, &keel_op_divide, x, of, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const double none = e->graph->held == KEEL_FLOAT16 ? -3e4 : -1e9; /* Keras's numbers */
    const keel_value mask = e->mask[0];
    keel_value x = e->in[0];
    int64_t axis;
    if (a->axis.count == 0) return keel_fail(KEEL_EARG, "Softmax: axis: there must be one");
    if (mask >= 0 && keel_value_shape(e, mask)->rank != keel_value_shape(e, x)->rank)
        return keel_fail(KEEL_EUNSUP, "Softmax with a mask of fewer dims than its values");
    if (mask >= 0) KEEL_TRY(keel_emit_choice(e, mask, KEEL_OF_VALUE(x), KEEL_OF_NUMBER(none), &x));
    if (a->axis.count > 1) {
        KEEL_TRY(over_several(e, x, e->out));
    } else {
        KEEL_TRY(keel_row_axis(e, a->axis.at[0], &axis));
        KEEL_TRY(keel_emit_along(e, &keel_op_softmax, x, axis, e->out));
    }
    if (mask < 0) return KEEL_OK;
    return keel_emit_choice(e, mask, KEEL_OF_VALUE(e->out[0]), KEEL_OF_NUMBER(0), e->out);
}

const keel_layer keel_layer_softmax = {
    .type = { KEEL_LAYER_HEAD("Softmax", "Probabilities along one axis, or over several."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .emit = emit,
};
