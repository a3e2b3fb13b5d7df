/* In training something is added to each image [H, W, C], and what is not below a threshold becomes
 * its negative. Both are drawn, of values from 0 to 255: from the lower factor itself, as Keras
 * does, to 255 times the higher one. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals addition_factor, threshold_factor, value_range;
    keel_range addition, threshold, values;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, addition_factor, "0.0", "part of 255 to add: f for [0, f], or a pair"),
    KEEL_FACTOR(args_t, threshold_factor, "0.0",
                "part of 255 to begin at: f for [0, f], or a pair"),
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    const keel_range bounds = { 0, 1 };
    args_t *a = args;
    KEEL_TRY(keel_factor_range(&a->addition, &a->addition_factor, "addition_factor", bounds, true));
    KEEL_TRY(
        keel_factor_range(&a->threshold, &a->threshold_factor, "threshold_factor", bounds, true));
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_SOLARIZE,
                                   .range = { { a->addition.low, 255 * a->addition.high },
                                              { a->threshold.low, 255 * a->threshold.high } },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

const keel_layer keel_layer_solarization = {
    .type = { KEEL_LAYER_HEAD("Solarization", "Inverts bright values of images while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
