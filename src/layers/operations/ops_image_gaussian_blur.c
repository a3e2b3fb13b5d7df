/* Images blurred by a Gaussian window. */
#include "layers/operations/_image.h"
#include "ops/smooth.h"
#include <math.h>

typedef struct args_t {
    keel_ints kernel_size;
    keel_reals sigma;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, kernel_size, 2, "[3, 3]", 1, 255, "height and width of the window"),
    { .key = "sigma",
      .kind = KEEL_FIELD_REALS,
      .offset = offsetof(args_t, sigma),
      .dflt = "[1.0, 1.0]",
      .help = "deviations across and down, in pixels" },
    KEEL_IMAGE_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_shape in;
    KEEL_TRY(keel_image_in(e, a->data_format, &in));
    if (a->sigma.count != 2 || !(a->sigma.at[0] > 0) || !(a->sigma.at[1] > 0))
        return keel_fail(KEEL_EARG, "sigma: two numbers above 0");
    const keel_smooth_args op = { .always = true,
                                  .size = { a->kernel_size.at[0], a->kernel_size.at[1] },
                                  .deviation = { a->sigma.at[0], a->sigma.at[1] },
                                  .values = { -INFINITY, INFINITY } };
    return keel_emit_on(e, &keel_op_smooth, &op, e->in, 1, e->out);
}

KEEL_IMAGE_OPERATION(ops_image_gaussian_blur, "GaussianBlur", args_t,
                     "Images blurred by a Gaussian window.")
