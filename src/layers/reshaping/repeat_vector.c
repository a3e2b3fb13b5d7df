/* [C] n times: [n, C]. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t n;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, n, NULL, 1, 1e9, "how often"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    char shape[96];
    keel_shape_text(shape, in);
    if (in->rank != 1) return keel_fail(KEEL_ESHAPE, "expected rows of (features,), got %s", shape);
    const keel_shape one = KEEL_SHAPE(1, in->dim[0]);
    const keel_upsample_args op = { .axis = 0, .factor = a->n };
    keel_value x;
    KEEL_TRY(keel_emit_view(e, &one, e->in[0], &x));
    return keel_emit_on(e, &keel_op_upsample, &op, &x, 1, e->out);
}

const keel_layer keel_layer_repeat_vector = {
    .type = { KEEL_LAYER_HEAD("RepeatVector", "Repeats a row of numbers."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
