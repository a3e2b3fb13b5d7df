/* Images seen through a projection, the same for all. */
#include "layers/operations/_image.h"
#include "ops/warp.h"

typedef struct args_t {
    int interpolation, fill_mode, data_format;
    double fill_value;
} args_t;

static const keel_field fields[] = {
    KEEL_CHOICE(args_t, interpolation, "\"bilinear\"", "bilinear|nearest", "between pixels"),
    KEEL_CHOICE(args_t, fill_mode, "\"constant\"", "reflect|constant|wrap|nearest",
                "what is seen outside of the image"),
    KEEL_FLOAT(args_t, fill_value, "0", 0, 0, "what fill_mode constant fills with"),
    KEEL_IMAGE_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const json_t *transform = keel_argument(e, 1, "transform");
    keel_warp_args op = { .kind = KEEL_WARP_MATRIX,
                          .nearest = a->interpolation == 1,
                          .fill = (keel_warp_fill)a->fill_mode,
                          .fill_value = a->fill_value };
    keel_numbers_args numbers = { 0 };
    keel_shape in;
    KEEL_TRY(keel_image_in(e, a->data_format, &in));
    if (!json_is_array(transform))
        return keel_fail(KEEL_EUNSUP,
                         "argument transform: only an array of 8 numbers is supported");
    KEEL_TRY(keel_list_read(transform, "transform", &numbers));
    const keel_shape *s = &numbers.shape;
    if (keel_shape_count(s) != 8 || s->rank > 2 || s->dim[s->rank - 1] != 8)
        return keel_fail(KEEL_EUNSUP, "argument transform: 8 numbers for all images together are "
                                      "supported, not others for each row of a batch");
    for (int i = 0; i < 8; i++) op.matrix[i] = numbers.at[i];
    return keel_emit_on(e, &keel_op_warp, &op, e->in, 1, e->out);
}

KEEL_IMAGE_OPERATION(ops_image_affine_transform, "AffineTransform", args_t,
                     "Images seen through a projection.", .places = true)
