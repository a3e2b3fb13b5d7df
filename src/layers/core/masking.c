/* Steps of [T, C] whose numbers all equal mask_value become 0, and later layers ignore them. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    double mask_value;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, mask_value, "0.0", 0, 0, "a step of nothing but this does not count"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_not_equal_to_args op = { .value = a->mask_value, .any = true };
    KEEL_TRY(keel_emit_on(e, &keel_op_not_equal_to, &op, e->in, 1, e->out_mask));
    const keel_value in[2] = { e->in[0], e->out_mask[0] };
    return keel_emit_on(e, &keel_op_masked, NULL, in, 2, e->out);
}

const keel_layer keel_layer_masking = {
    .type = { KEEL_LAYER_HEAD("Masking", "Steps of one value do not count in later layers."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
