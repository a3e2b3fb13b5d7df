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

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const double none = e->graph->held == KEEL_FLOAT16 ? -3e4 : -1e9; /* Keras's numbers */
    const keel_value mask = e->mask[0];
    keel_value x = e->in[0];
    if (mask >= 0 && keel_value_shape(e, mask)->rank != keel_value_shape(e, x)->rank)
        return keel_fail(KEEL_EUNSUP, "Softmax with a mask of fewer dims than its values");
    if (mask >= 0) KEEL_TRY(keel_emit_choice(e, mask, KEEL_OF_VALUE(x), KEEL_OF_NUMBER(none), &x));
    KEEL_TRY(keel_emit_softmax(e, &a->axis, false, x, e->out));
    if (mask < 0) return KEEL_OK;
    return keel_emit_choice(e, mask, KEEL_OF_VALUE(e->out[0]), KEEL_OF_NUMBER(0), e->out);
}

const keel_layer keel_layer_softmax = {
    .type = { KEEL_LAYER_HEAD("Softmax", "Probabilities along one axis, or over several."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .mask_argument = true,
    .emit = emit,
};
