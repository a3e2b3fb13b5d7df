/* Passes its input on, and makes its size a term of the loss (layers/activity.c). */
#include "layers/layer.h"

typedef struct args_t {
    double l1, l2;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, l1, "0.0", 0, 1e30, "factor of the sum of sizes"),
    KEEL_FLOAT(args_t, l2, "0.0", 0, 1e30, "factor of the sum of squares"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    e->out[0] = e->in[0];
    if (!keel_dtype_flows(keel_emit_in(e, 0)->dtype)) return KEEL_OK;
    return keel_emit_activity(e, &(keel_activity){ .l1 = a->l1, .l2 = a->l2 }, e->in[0]);
}

const keel_layer keel_layer_activity_regularization = {
    .type = { KEEL_LAYER_HEAD("ActivityRegularization",
                              "Adds the size of its input to the loss and passes it on."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
