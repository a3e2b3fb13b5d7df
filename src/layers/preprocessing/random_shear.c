/* In training each image [H, W, C] is sheared by random factors; with probability 1/2 both are
 * negative. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals x_factor, y_factor;
    keel_range across, down;
    keel_warp_look look;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, x_factor, "0.0",
                "pixels across for each one down: f for [-f, f], or a pair"),
    KEEL_FACTOR(args_t, y_factor, "0.0", "pixels down for each one across, the same"),
    KEEL_WARP_FIELDS(args_t, look),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    KEEL_TRY(keel_factor_range(&a->down, &a->y_factor, "y_factor", (keel_range){ -1, 1 }, true));
    return keel_factor_range(&a->across, &a->x_factor, "x_factor", (keel_range){ -1, 1 }, true);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_warp_args op = { .kind = KEEL_WARP_SHEAR,
                                .range = { a->down, a->across, { 0, 1 } } };
    return keel_emit_warp(e, &op, &a->look);
}

/* Keras writes the range of a number f as [-f, f], which it refuses to read: f is read. */
static keel_status to_config(const void *args, json_t *config)
{
    const args_t *a = args;
    const keel_reals *const all[] = { &a->x_factor, &a->y_factor };
    for (int i = 0; i < 2; i++) {
        const bool even = all[i]->count == 2 && all[i]->at[0] == -all[i]->at[1];
        if (even &&
            json_object_set_new(config, i ? "y_factor" : "x_factor", json_real(all[i]->at[1])))
            return keel_fail(KEEL_ENOMEM, "out of memory writing a layer");
    }
    return KEEL_OK;
}

const keel_layer keel_layer_random_shear = {
    .type = { KEEL_LAYER_HEAD("RandomShear", "Shears images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
    .to_config = to_config,
};
