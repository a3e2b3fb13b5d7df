/* In training a rectangle of some images [H, W, C], of random place and size, is filled. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals factor, scale, fill_value, value_range;
    keel_range probability, area, values;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, "1.0", "how probable it is: f for [0, f], or a pair"),
    KEEL_FACTOR(args_t, scale, "[0.02, 0.33]", "squares of the parts of the sides it takes"),
    KEEL_FACTOR(args_t, fill_value, "null", "a number, or three of them; null: normal draws"),
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
    KEEL_TRY(keel_factor_range(&a->area, &a->scale, "scale", bounds, false));
    if (a->fill_value.count == 2 || a->fill_value.count > 3)
        return keel_fail(KEEL_EARG, "fill_value must be null, a number or three numbers");
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_erase_args op = { .range = { a->area, { 0, 1 }, a->probability, { 0, 1 } },
                           .values = a->values,
                           .n_fill = a->fill_value.count };
    for (int i = 0; i < op.n_fill; i++) op.fill[i] = a->fill_value.at[i];
    return keel_emit_chance(e, &keel_op_erase, &op);
}

const keel_layer keel_layer_random_erasing = {
    .type = { KEEL_LAYER_HEAD("RandomErasing", "Erases parts of images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
