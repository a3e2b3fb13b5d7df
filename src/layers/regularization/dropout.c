/* In training each number becomes zero with probability `rate`, and the others are divided by 1 -
 * rate. Which ones is a function of seed, epoch, layer, row and place. */
#include "layers/regularization/dropout.h"
#include "ops/args.h"

typedef struct args_t {
    double rate;
    keel_ints noise_shape;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, rate, NULL, 0, 1, "the fraction that is dropped"),
    KEEL_NOISE_SHAPE(args_t),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_dropout_how *how = e->how;
    keel_dropout_args op = { .rate = a->rate };
    KEEL_TRY(keel_emit_drawn(e, a->rate));
    if (how) return keel_emit_on(e, how->op, how->args, e->in, e->n_in, e->out);
    if (a->noise_shape.count >= 0) KEEL_TRY(keel_noise_shape(e, &a->noise_shape, &op.noise));
    return keel_emit_one(e, &keel_op_dropout, &op);
}

const keel_layer keel_layer_dropout = {
    .type = { KEEL_LAYER_HEAD("Dropout", "Drops numbers by chance while training."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .by_chance = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
