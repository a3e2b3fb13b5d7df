/* In training some images [H, W, 3] lose their colours. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    double factor;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, factor, "0.5", 0, 1, "how probable it is"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_GRAY,
                                   .range = { { a->factor, a->factor }, { 0, 1 } } };
    return keel_emit_recolor(e, &op);
}

const keel_layer keel_layer_random_grayscale = {
    .type = { KEEL_LAYER_HEAD("RandomGrayscale", "Makes images gray by chance while training."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
