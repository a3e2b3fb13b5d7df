/* The mean over the steps of [T, C]: [C], or [1, C] with keepdims. Of a masked value only the steps
 * that count. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int data_format;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_DATA_FORMAT(args_t),
    KEEL_BOOL(args_t, keepdims, "false", "keep the steps as a dim of 1"),
    { 0 },
};

/* Without a mask: an image of one column, whose pooling has fast kernels. */
static keel_status plain(keel_emit *e, const args_t *a, const keel_shape *in)
{
    const keel_reshape_args image = { .shape = KEEL_SHAPE(in->dim[0], 1, in->dim[1]) };
    const keel_reshape_args kept = { .shape = KEEL_SHAPE(1, in->dim[1]) };
    const keel_global_pool2d_args op = { 0 };
    keel_value x, y;
    KEEL_TRY(keel_emit_on(e, &keel_op_reshape, &image, e->in, 1, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_global_average_pool2d, &op, &x, 1, &y));
    e->out[0] = y;
    return a->keepdims ? keel_emit_on(e, &keel_op_reshape, &kept, &y, 1, e->out) : KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const keel_global_pool2d_args op = { .keepdims = a->keepdims };
    char shape[96];
    keel_shape_text(shape, &in);
    if (in.rank != 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (steps, channels), got %s", shape);
    e->out_mask[0] = KEEL_MASK_NONE;
    if (e->mask[0] < 0) return plain(e, a, &in);
    const keel_value both[2] = { e->in[0], e->mask[0] };
    return keel_emit_on(e, &keel_op_masked_mean, &op, both, 2, e->out);
}

const keel_layer keel_layer_global_average_pooling1d = {
    .type = { KEEL_LAYER_HEAD("GlobalAveragePooling1D", "The mean of each channel over the steps."),
              .args_size = sizeof(args_t), .fields = fields },
    .aliases = "GlobalAvgPool1D",
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .whole = KEEL_WHOLE_TAKEN,
    .emit = emit,
};
