/* In training brightness, contrast, saturation and hue of images change, if they have a factor. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals value_range, factor[4];
    keel_range values, range[4];
    int data_format;
} args_t;

static const struct {
    const char *key;
    keel_recolor_kind kind;
    double least;
} change[4] = {
    { "brightness_factor", KEEL_RECOLOR_BRIGHTNESS, -1 },
    { "contrast_factor", KEEL_RECOLOR_CONTRAST, 0 },
    { "saturation_factor", KEEL_RECOLOR_SATURATE, -1 },
    { "hue_factor", KEEL_RECOLOR_HUE, 0 },
};

#define CHANGE(key_, i, help_)                                                                     \
    {                                                                                              \
        .key = key_, .kind = KEEL_FIELD_REALS, .offset = offsetof(args_t, factor[i]),              \
        .dflt = "null", .count = -1, .help = help_                                                 \
    }

static const keel_field fields[] = {
    KEEL_VALUE_RANGE(args_t, value_range),
    CHANGE("brightness_factor", 0, "as RandomBrightness has it"),
    CHANGE("contrast_factor", 1, "as RandomContrast has it"),
    CHANGE("saturation_factor", 2, "as RandomSaturation has it"),
    CHANGE("hue_factor", 3, "as RandomHue has it"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    for (int i = 0; i < 4; i++)
        if (a->factor[i].count)
            KEEL_TRY(keel_factor_range(&a->range[i], &a->factor[i], change[i].key,
                                       (keel_range){ change[i].least, 1 }, false));
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    keel_value *x = e->out;
    if (a->data_format == 1)
        return keel_fail(KEEL_EUNSUP, "channels_first: Keras 3.15 changes colors along the width");
    KEEL_TRY(keel_emit_image(e, &in));
    *x = e->in[0];
    for (int i = 0; i < 4; i++) {
        keel_recolor_args op = { .kind = change[i].kind,
                                 .range = { a->range[i] },
                                 .first = 2 * (uint32_t)i,
                                 .values = a->values };
        if (!a->factor[i].count) continue;
        if (op.kind == KEEL_RECOLOR_CONTRAST)
            op.range[0] = (keel_range){ 1 - a->range[i].low, 1 + a->range[i].high };
        if (op.kind == KEEL_RECOLOR_HUE) op.range[1] = (keel_range){ 0, 1 };
        KEEL_TRY(keel_recolor_check(op.kind, in));
        if (e->training) KEEL_TRY(keel_emit_on(e, &keel_op_recolor, &op, x, 1, x));
    }
    return KEEL_OK;
}

const keel_layer keel_layer_random_color_jitter = {
    .type = { KEEL_LAYER_HEAD("RandomColorJitter",
                              "Changes the colours of images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
