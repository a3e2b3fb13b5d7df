/* In training some images [H, W, C] are blurred by a Gaussian window. Its deviations are drawn for
 * each image; Keras draws them for a whole batch. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals factor, sigma, value_range;
    keel_range probability, deviation, values;
    keel_ints kernel_size;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, "1.0", "how probable it is: f for [0, f], or a pair"),
    KEEL_INTS(args_t, kernel_size, 2, "[3, 3]", 1, 255, "height and width of the window, odd"),
    KEEL_FACTOR(args_t, sigma, "1.0", "deviation in pixels, up to 1: f for [0, f], or a pair"),
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    const keel_range bounds = { 0, 1 };
    KEEL_TRY(keel_factor_range(&a->probability, &a->factor, "factor", bounds, false));
    KEEL_TRY(keel_factor_range(&a->deviation, &a->sigma, "sigma", bounds, false));
    for (int d = 0; d < 2; d++)
        if (a->kernel_size.at[d] % 2 == 0)
            return keel_fail(KEEL_EARG, "kernel_size %lld is not odd",
                             (long long)a->kernel_size.at[d]);
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_smooth_args op = { .size = { a->kernel_size.at[0], a->kernel_size.at[1] },
                                  .range = { a->probability, { 0, 1 }, a->deviation },
                                  .values = a->values };
    return keel_emit_chance(e, &keel_op_smooth, &op);
}

const keel_layer keel_layer_random_gaussian_blur = {
    .type = { KEEL_LAYER_HEAD("RandomGaussianBlur", "Blurs images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
