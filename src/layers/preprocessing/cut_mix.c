/* In inference images [H, W, C] stay. Training is refused: see keel_emit_mixing. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals factor;
    keel_range range;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, "1.0", "of the beta distribution of the shares"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    return keel_factor_range(&a->range, &a->factor, "factor", (keel_range){ 0, 1 }, false);
}

static keel_status emit(keel_emit *e)
{
    return keel_emit_mixing(e);
}

const keel_layer keel_layer_cut_mix = {
    .type = { KEEL_LAYER_HEAD("CutMix",
                              "In inference images stay; it does not train inside a model."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
