/* The windows of images [C, H, W] as columns [C kernel, windows]. */
#include "layers/operations/_patches.h"
#include "base/memory.h"
#include "ops/pad.h"

static const keel_field fields[] = { KEEL_PATCHES_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_patches *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const keel_axis_args second = { .axis = 1 };
    const int64_t rows = a->kernel_size.at[0], columns = a->kernel_size.at[1];
    keel_pad_args pad = { 0 };
    keel_status s = KEEL_OK;
    keel_value x = e->in[0];
    int64_t n[2];
    if (in.rank != 3) return keel_fail(KEEL_ESHAPE, "expected rows of (channels, height, width)");
    KEEL_TRY(patches_of(a, in.dim[1], in.dim[2], n));
    for (int i = 0; i < 2; i++) pad.before[i + 1] = pad.behind[i + 1] = a->padding.at[i];
    if (pad.before[1] || pad.before[2]) KEEL_TRY(keel_emit_on(e, &keel_op_pad, &pad, &x, 1, &x));
    keel_value *part = keel_calloc((size_t)(rows * columns), sizeof *part);
    if (!part) return KEEL_ENOMEM;
    const keel_shape each = KEEL_SHAPE(in.dim[0], 1, n[0] * n[1]);
    for (int64_t i = 0; i < rows * columns && s >= 0; i++) {
        keel_slice_args op = { .step = { 1, 1, 1 }, .count = { in.dim[0], n[0], n[1] } };
        op.begin[1] = i / columns * a->dilation.at[0];
        op.begin[2] = i % columns * a->dilation.at[1];
        if (n[0] > 1) op.step[1] = a->stride.at[0];
        if (n[1] > 1) op.step[2] = a->stride.at[1];
        s = keel_emit_on(e, &keel_op_slice, &op, &x, 1, &part[i]);
        if (s >= 0) s = keel_emit_view(e, &each, part[i], &part[i]);
    }
    if (s >= 0) s = keel_emit_on(e, &keel_op_concatenate, &second, part, (int)(rows * columns), &x);
    keel_free(part);
    const keel_shape out = KEEL_SHAPE(in.dim[0] * rows * columns, n[0] * n[1]);
    return s < 0 ? s : keel_emit_view(e, &out, x, e->out);
}

const keel_layer keel_layer_ops_unfold = {
    .type = { KEEL_OPERATION_HEAD("Unfold", "nn", "The windows of images as columns."),
              .args_size = sizeof(keel_patches), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
