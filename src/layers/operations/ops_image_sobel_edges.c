/* How images change downwards and to the right, by Sobel's windows: [H, W, C] gives [H, W, C, 2].
 * Beyond the border images are mirrored about their last pixels. */
#include "layers/operations/_image.h"

typedef struct args_t {
    int data_format;
} args_t;

static const keel_field fields[] = { KEEL_IMAGE_FORMAT(args_t), { 0 } };

/* One more place at both ends of an axis of n. */
static keel_status mirrored(keel_emit *e, keel_value *x, int64_t axis, int64_t n)
{
    const keel_axis_args along = { .axis = axis };
    keel_value part[3] = { 0, *x, 0 };
    KEEL_TRY(keel_emit_part(e, *x, axis, 1, 1, &part[0]));
    KEEL_TRY(keel_emit_part(e, *x, axis, n - 2, 1, &part[2]));
    return keel_emit_on(e, &keel_op_concatenate, &along, part, 3, x);
}

/* Differences of places two apart along an axis, smoothed by 1, 2, 1 along the other. */
static keel_status edges(keel_emit *e, keel_value x, int64_t axis, const int64_t *size,
                         keel_value *out)
{
    const int64_t other = 1 - axis, n = size[axis], m = size[other];
    keel_value before, behind, part[3];
    KEEL_TRY(keel_emit_part(e, x, axis, 0, n, &before));
    KEEL_TRY(keel_emit_part(e, x, axis, 2, n, &behind));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, behind, before, &x));
    for (int i = 0; i < 3; i++) KEEL_TRY(keel_emit_part(e, x, other, i, m, &part[i]));
    KEEL_TRY(keel_emit_scaled(e, part[1], 2, 0, &part[1]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, part[0], part[1], &x));
    return keel_emit_pair(e, &keel_op_plus, x, part[2], out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_axis_args last = { .axis = 3 };
    keel_value x = e->in[0], both[2];
    keel_shape in;
    KEEL_TRY(keel_image_in(e, a->data_format, &in));
    if (in.dim[0] < 2 || in.dim[1] < 2)
        return keel_fail(KEEL_ESHAPE, "images of %lld x %lld have no edges: 2 x 2 at least",
                         (long long)in.dim[0], (long long)in.dim[1]);
    const keel_shape one = KEEL_SHAPE(in.dim[0], in.dim[1], in.dim[2], 1);
    for (int d = 0; d < 2; d++) KEEL_TRY(mirrored(e, &x, d, in.dim[d]));
    for (int d = 0; d < 2; d++) {
        KEEL_TRY(edges(e, x, d, in.dim, &both[d]));
        KEEL_TRY(keel_emit_view(e, &one, both[d], &both[d]));
    }
    return keel_emit_on(e, &keel_op_concatenate, &last, both, 2, e->out);
}

KEEL_IMAGE_OPERATION(ops_image_sobel_edges, "SobelEdges", args_t,
                     "How images change downwards and to the right.")
