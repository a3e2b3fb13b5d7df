/* Columns [C kernel, windows] added up as the windows of images [C, H, W]. */
#include "layers/operations/_patches.h"
#include "ops/pad.h"

static const keel_field fields[] = {
    KEEL_INTS(keel_patches, output_size, 2, NULL, 1, 1e6, "of the images"),
    KEEL_PATCHES_FIELDS,
    { 0 },
};

/* The image to which the element at place (i, k) of each window adds: `x` is [C, n, m]. */
static keel_status put(keel_emit *e, keel_value x, const int64_t n[2], const int64_t at[2],
                       keel_value *out)
{
    const keel_patches *a = e->args;
    const int64_t c = keel_value_shape(e, x)->dim[0], *s = a->stride.at;
    const keel_shape apart = KEEL_SHAPE(c, n[0], 1, n[1], 1);
    const keel_shape joined = KEEL_SHAPE(c, n[0] * s[0], n[1] * s[1]);
    keel_pad_args gaps = { .behind = { 0, 0, s[0] - 1, 0, s[1] - 1 } }, around = { 0 };
    keel_slice_args own = { .step = { 1, 1, 1 }, .count = { c } };
    KEEL_TRY(keel_emit_view(e, &apart, x, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_pad, &gaps, &x, 1, &x));
    KEEL_TRY(keel_emit_view(e, &joined, x, &x));
    for (int i = 0; i < 2; i++) {
        const int64_t begin = at[i] * a->dilation.at[i] - a->padding.at[i]; /* in the image */
        const int64_t end = begin + n[i] * s[i], size = a->output_size.at[i];
        own.begin[i + 1] = begin < 0 ? -begin : 0;
        own.count[i + 1] = (end < size ? end : size) - begin - own.begin[i + 1];
        around.before[i + 1] = begin > 0 ? begin : 0;
        around.behind[i + 1] = end < size ? size - end : 0;
    }
    if (own.count[1] < 1 || own.count[2] < 1) { /* all of it is padding */
        *out = -1;
        return KEEL_OK;
    }
    KEEL_TRY(keel_emit_on(e, &keel_op_slice, &own, &x, 1, &x));
    return keel_emit_on(e, &keel_op_pad, &around, &x, 1, out);
}

static keel_status emit(keel_emit *e)
{
    const keel_patches *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const int64_t rows = a->kernel_size.at[0], columns = a->kernel_size.at[1];
    const int64_t places = rows * columns;
    keel_value x, part, sum = -1;
    int64_t n[2];
    KEEL_TRY(patches_of(a, a->output_size.at[0], a->output_size.at[1], n));
    if (in.rank != 2 || in.dim[0] % places || in.dim[1] != n[0] * n[1])
        return keel_fail(KEEL_ESHAPE, "expected columns of %lld windows of channels times %lld",
                         (long long)(n[0] * n[1]), (long long)places);
    const int64_t c = in.dim[0] / places;
    const keel_shape parts = KEEL_SHAPE(c, places, in.dim[1]), image = KEEL_SHAPE(c, n[0], n[1]);
    KEEL_TRY(keel_emit_view(e, &parts, e->in[0], &x));
    for (int64_t i = 0; i < places; i++) {
        const int64_t at[2] = { i / columns, i % columns };
        KEEL_TRY(keel_emit_part(e, x, 1, i, 1, &part));
        KEEL_TRY(keel_emit_view(e, &image, part, &part));
        KEEL_TRY(put(e, part, n, at, &part));
        if (part < 0) continue;
        if (sum >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_plus, sum, part, &part));
        sum = part;
    }
    e->out[0] = sum;
    return sum >= 0 ? KEEL_OK : keel_fail(KEEL_ESHAPE, "all windows are padding");
}

const keel_layer keel_layer_ops_fold = {
    .type = { KEEL_OPERATION_HEAD("Fold", "nn", "Columns added up as the windows of images."),
              .args_size = sizeof(keel_patches), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
