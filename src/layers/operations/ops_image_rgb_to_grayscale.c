/* Images of one channel: the brightness of red, green and blue; of whole numbers without its
 * fraction, as in Keras. */
#include "layers/operations/_image.h"
#include "ops/recolor.h"
#include "ops/rounded.h"

typedef struct args_t {
    int data_format;
} args_t;

static const keel_field fields[] = { KEEL_IMAGE_FORMAT(args_t), { 0 } };

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    static const keel_rounded_args cut = { .to = KEEL_TRUNC };
    const keel_recolor_args gray = { .kind = KEEL_RECOLOR_GRAY, .range = { { 1, 1 } } };
    keel_shape in;
    keel_value y;
    KEEL_TRY(keel_image_in(e, a->data_format, &in));
    if (!keel_recolor_takes(KEEL_RECOLOR_GRAY, in.dim[2]))
        return keel_fail(KEEL_ESHAPE, "images of %lld channels are not red, green and blue",
                         (long long)in.dim[2]);
    e->out[0] = e->in[0];
    if (in.dim[2] == 1) return KEEL_OK;
    KEEL_TRY(keel_emit_on(e, &keel_op_recolor, &gray, e->in, 1, &y));
    if (!keel_emit_is_whole(e, 0)) return keel_emit_part(e, y, 2, 0, 1, e->out);
    KEEL_TRY(keel_emit_part(e, y, 2, 0, 1, &y));
    return keel_emit_on(e, &keel_op_rounded, &cut, &y, 1, e->out);
}

KEEL_IMAGE_OPERATION(ops_image_rgb_to_grayscale, "RGBToGrayscale", args_t,
                     "The brightness of images.", .whole = KEEL_WHOLE_KEPT)
