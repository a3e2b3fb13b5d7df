/* In training the values of each channel of images [H, W, C] are spread evenly over their range.
 * In inference images stay: Keras's page says otherwise, but its layer does so. (Keras 3.15 cannot
 * put it into a Functional model: it says that its output is its input.) */
#include "layers/preprocessing/_random.h"
#include "ops/equalize.h"

typedef struct args_t {
    keel_reals value_range;
    keel_range values;
    int64_t bins;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_INT(args_t, bins, "256", 1, KEEL_EQUALIZE_BINS_MAX, "of the histogram"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    KEEL_TRY(keel_value_range(&a->values, &a->value_range));
    a->value_range.at[0] = a->values.low; /* Keras, too, writes the smaller one first */
    a->value_range.at[1] = a->values.high;
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_equalize_args op = { .bins = a->bins, .values = a->values };
    return keel_emit_chance(e, &keel_op_equalize, &op);
}

const keel_layer keel_layer_equalization = {
    .type = { KEEL_LAYER_HEAD(
                  "Equalization",
                  "Spreads the values of images evenly over their range while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
