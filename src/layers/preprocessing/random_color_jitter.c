/* In training brightness, contrast, saturation and hue of each image [H, W, C] change, one after
 * the other; those without a factor stay. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals value_range;
    keel_reals brightness_factor, contrast_factor, saturation_factor, hue_factor;
    keel_range values, brightness, contrast, saturation, hue;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_FACTOR(args_t, brightness_factor, "null", "as RandomBrightness has it"),
    KEEL_FACTOR(args_t, contrast_factor, "null", "as RandomContrast has it"),
    KEEL_FACTOR(args_t, saturation_factor, "null", "as RandomSaturation has it"),
    KEEL_FACTOR(args_t, hue_factor, "null", "as RandomHue has it"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    const keel_range part = { 0, 1 }, both = { -1, 1 };
    const struct {
        keel_range *out, bounds;
        const keel_reals *factor;
        const char *key;
    } all[] = {
        { &a->brightness, both, &a->brightness_factor, "brightness_factor" },
        { &a->contrast, part, &a->contrast_factor, "contrast_factor" },
        { &a->saturation, both, &a->saturation_factor, "saturation_factor" },
        { &a->hue, part, &a->hue_factor, "hue_factor" },
    };
    for (int i = 0; i < 4; i++)
        if (all[i].factor->count)
            KEEL_TRY(
                keel_factor_range(all[i].out, all[i].factor, all[i].key, all[i].bounds, false));
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const struct {
        bool does;
        keel_recolor_args op;
    } all[] = {
        { a->brightness_factor.count > 0,
          { .kind = KEEL_RECOLOR_BRIGHTNESS, .range = { a->brightness }, .first = 0 } },
        { a->contrast_factor.count > 0,
          { .kind = KEEL_RECOLOR_CONTRAST,
            .range = { { 1 - a->contrast.low, 1 + a->contrast.high } },
            .first = 2 } },
        { a->saturation_factor.count > 0,
          { .kind = KEEL_RECOLOR_SATURATE, .range = { a->saturation }, .first = 4 } },
        { a->hue_factor.count > 0,
          { .kind = KEEL_RECOLOR_HUE, .range = { a->hue, { 0, 1 } }, .first = 6 } },
    };
    const keel_spec *in;
    keel_value x = e->in[0];
    if (a->data_format == 1)
        return keel_fail(KEEL_EUNSUP, "data_format channels_first: Keras 3.15 changes colors along "
                                      "the width then; use channels_last");
    KEEL_TRY(keel_emit_image(e, &in));
    for (int i = 0; i < 4; i++) {
        keel_recolor_args op = all[i].op;
        if (!all[i].does) continue;
        op.values = a->values;
        KEEL_TRY(keel_recolor_check(op.kind, in));
        if (e->training) KEEL_TRY(keel_emit_on(e, &keel_op_recolor, &op, &x, 1, &x));
    }
    e->out[0] = x;
    return KEEL_OK;
}

static keel_status to_config(const void *args, json_t *config)
{
    const args_t *a = args;
    KEEL_TRY(keel_factor_to_config(config, "brightness_factor", &a->brightness_factor));
    KEEL_TRY(keel_factor_to_config(config, "contrast_factor", &a->contrast_factor));
    KEEL_TRY(keel_factor_to_config(config, "saturation_factor", &a->saturation_factor));
    return keel_factor_to_config(config, "hue_factor", &a->hue_factor);
}

const keel_layer keel_layer_random_color_jitter = {
    .type = { .name = "RandomColorJitter",
              .module = "keras.layers",
              .help = "Changes the colours of images by chance while training.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
    .to_config = to_config,
};
