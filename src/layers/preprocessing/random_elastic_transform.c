/* In training some images [H, W, C] are bent by a smooth random field, whose strength is drawn for
 * each image; Keras draws it for a whole batch. */
#include "layers/preprocessing/_random.h"
#include "ops/elastic.h"

typedef struct args_t {
    keel_reals factor, scale, value_range;
    keel_range probability, strength, values;
    int interpolation, fill_mode, data_format;
    double fill_value;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, "1.0", "how probable it is: f for [0, f], or a pair"),
    KEEL_FACTOR(args_t, scale, "1.0", "strength, up to 1: f for [0, f], or a pair"),
    KEEL_CHOICE(args_t, interpolation, "\"bilinear\"", "bilinear|nearest", "between pixels"),
    KEEL_CHOICE(args_t, fill_mode, "\"reflect\"", "reflect|constant|wrap|nearest",
                "what is seen outside of the image"),
    KEEL_FLOAT(args_t, fill_value, "0.0", 0, 0, "what fill_mode constant fills with"),
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
    KEEL_TRY(keel_factor_range(&a->strength, &a->scale, "scale", bounds, true));
    return keel_value_range(&a->values, &a->value_range);
}

/* Images are clipped to their range only if some are bent. */
static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    const keel_elastic_args op = { .range = { a->probability, { 0, 1 }, a->strength },
                                   .nearest = a->interpolation == 1,
                                   .fill = (keel_elastic_fill)a->fill_mode,
                                   .fill_value = a->fill_value,
                                   .values = a->values };
    if (a->probability.high != 0 && a->strength.high != 0)
        return keel_emit_chance(e, &keel_op_elastic, &op);
    KEEL_TRY(keel_emit_image(e, &in));
    e->out[0] = e->in[0];
    return KEEL_OK;
}

const keel_layer keel_layer_random_elastic_transform = {
    .type = { KEEL_LAYER_HEAD("RandomElasticTransform", "Bends images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
