/* In training each image [H, W, C] keeps a random number of the 8 bits of its values. */
#include "layers/preprocessing/_random.h"
#include <math.h>

typedef struct args_t {
    keel_reals factor, value_range;
    keel_range bits, values;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, NULL,
                "bits from 1 to before f, or of a pair (a, b); always a if a = b"),
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    KEEL_TRY(keel_factor_range(&a->bits, &a->factor, "factor", (keel_range){ 1, 8 }, true));
    if (a->bits.low != floor(a->bits.low) || a->bits.high != floor(a->bits.high))
        return keel_fail(KEEL_EARG, "factor: %g to %g bits are no whole numbers", a->bits.low,
                         a->bits.high);
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_POSTERIZE,
                                   .range = { a->bits },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

/* Whole numbers, as Keras shifts by them. */
static keel_status to_config(const void *args, json_t *config)
{
    const keel_range *bits = &((const args_t *)args)->bits;
    json_t *pair = json_pack("[I, I]", (json_int_t)bits->low, (json_int_t)bits->high);
    if (json_object_set_new(config, "factor", pair) == 0) return KEEL_OK;
    return keel_fail(KEEL_ENOMEM, "out of memory writing a layer");
}

const keel_layer keel_layer_random_posterization = {
    .type = { KEEL_LAYER_HEAD("RandomPosterization",
                              "Takes bits from the values of images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
    .to_config = to_config,
};
