/* y = x where x > 0, else alpha x, with a trained alpha for each place of a row; along shared_axes
 * (counted with the batch) all places have the same alpha. */
#include "layers/layer.h"

typedef struct args_t {
    keel_object alpha_initializer, alpha_regularizer, alpha_constraint;
    keel_ints shared_axes;
} args_t;

static const keel_field fields[] = {
    KEEL_OBJECT(args_t, alpha_initializer, "\"zeros\"", keel_initializer_find,
                "first values of alpha"),
    KEEL_OBJECT(args_t, alpha_regularizer, "null", keel_regularizer_find, "of alpha"),
    KEEL_OBJECT(args_t, alpha_constraint, "null", keel_constraint_find, "of alpha"),
    KEEL_INTS(args_t, shared_axes, 0, "null", 1, 7, "dims along which alpha is one number"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_weight_decl alpha = { .name = "alpha",
                               .shape = keel_emit_in(e, 0)->shape,
                               .initializer = &a->alpha_initializer,
                               .regularizer = &a->alpha_regularizer,
                               .constraint = &a->alpha_constraint };
    keel_weights w = { 0 };
    for (int i = 0; i < a->shared_axes.count; i++) {
        int64_t axis;
        KEEL_TRY(keel_row_axis(e, a->shared_axes.at[i], &axis));
        alpha.shape.dim[axis] = 1;
    }
    KEEL_TRY(keel_emit_weight(e, &alpha, &w));
    return keel_emit_weighted(e, &keel_op_prelu, NULL, e->in[0], &w, e->out);
}

const keel_layer keel_layer_prelu = {
    .type = { KEEL_LAYER_HEAD("PReLU", "Rectifier with learned slopes below 0."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .emit = emit,
};
