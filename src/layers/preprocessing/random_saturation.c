/* In training the saturation of each image [H, W, 3] is multiplied by a random number. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals factor, value_range;
    keel_range range, values;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, NULL, "f multiplies by f / (1 - f): f for [-f, f], or a pair"),
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    KEEL_TRY(keel_factor_range(&a->range, &a->factor, "factor", (keel_range){ -1, 1 }, false));
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_SATURATE,
                                   .range = { a->range },
                                   .values = a->values };
    return keel_emit_recolor(e, &op, a->data_format);
}

static keel_status to_config(const void *args, json_t *config)
{
    return keel_factor_to_config(config, "factor", &((const args_t *)args)->factor);
}

const keel_layer keel_layer_random_saturation = {
    .type = { .name = "RandomSaturation",
              .module = "keras.layers",
              .help = "Changes the saturation of images by chance while training.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
    .to_config = to_config,
};
