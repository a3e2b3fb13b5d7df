/* In inference images [H, W, C] stay. Training is refused: see keel_emit_mixing. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    double alpha;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, alpha, "0.2", 0, 1e9, "of the beta distribution of the shares"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_mixing(e);
}

const keel_layer keel_layer_mix_up = {
    .type = { KEEL_LAYER_HEAD("MixUp",
                              "In inference images stay; it does not train inside a model."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
