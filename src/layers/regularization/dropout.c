/* In training each number becomes zero with probability `rate`, and the others are divided by 1 -
 * rate. Which ones is a function of seed, epoch, layer, row and place. */
#include "layers/regularization/dropout.h"
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    double rate;
    keel_ints noise_shape;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, rate, NULL, 0, 1, "the fraction that is dropped"),
    KEEL_INTS(args_t, noise_shape, -3, "null", -1, 1e15,
              "with the batch first (null or -1): a dim of 1 shares its draw"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    { 0 },
};

static keel_status noise(const keel_emit *e, const keel_ints *given, keel_shape *out)
{
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    char shape[96];
    keel_shape_text(shape, in);
    if (given->count != in->rank + 1)
        return keel_fail(KEEL_ESHAPE, "noise_shape has %d dims, but the batch and rows of %s",
                         given->count, shape);
    if (given->at[0] != -1)
        return keel_fail(KEEL_EUNSUP,
                         "noise_shape: the batch must be null, every row draws by itself");
    out->rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        const int64_t d = given->at[i + 1];
        if (d != -1 && d != 1 && d != in->dim[i])
            return keel_fail(KEEL_ESHAPE, "noise_shape: dim %d is %lld, not 1 or that of %s", i + 1,
                             (long long)d, shape);
        out->dim[i] = d == -1 ? in->dim[i] : d;
    }
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_dropout_how *how = e->how;
    keel_dropout_args op = { .rate = a->rate };
    if (how) return keel_emit_on(e, how->op, how->args, e->in, e->n_in, e->out);
    if (a->noise_shape.count >= 0) KEEL_TRY(noise(e, &a->noise_shape, &op.noise));
    return keel_emit_one(e, &keel_op_dropout, &op);
}

const keel_layer keel_layer_dropout = {
    .type = { KEEL_LAYER_HEAD("Dropout", "Drops numbers by chance while training."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .by_chance = true,
    .emit = emit,
};
