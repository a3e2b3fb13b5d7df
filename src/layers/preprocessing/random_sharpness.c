/* In training each image [H, W, C] becomes sharper or softer by a random amount. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals factor, value_range;
    keel_range range, values;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, NULL, "0.5 is as before, 0 is soft: f for [0, f], or a pair"),
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    KEEL_TRY(keel_factor_range(&a->range, &a->factor, "factor", (keel_range){ 0, 1 }, false));
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_smooth_args op = {
        .sharpens = true, .size = { 3, 3 }, .range = { a->range }, .values = a->values
    };
    return keel_emit_chance(e, &keel_op_smooth, &op, a->data_format);
}

static keel_status to_config(const void *args, json_t *config)
{
    const args_t *a = args;
    return keel_factor_to_config(config, "factor", &a->factor);
}

const keel_layer keel_layer_random_sharpness = {
    .type = { .name = "RandomSharpness",
              .module = "keras.layers",
              .help = "Changes the sharpness of images by chance while training.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
    .to_config = to_config,
};
