/* Stretches the values of each channel of images [H, W, C] to the whole range, in inference, too.
 */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals value_range;
    keel_range values;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_STRETCH, .values = a->values };
    if (a->data_format == 1)
        return keel_fail(KEEL_EUNSUP, "data_format channels_first: Keras 3.15 stretches along the "
                                      "width then; use channels_last");
    KEEL_TRY(keel_emit_image(e, &in));
    return keel_emit_one(e, &keel_op_recolor, &op);
}

const keel_layer keel_layer_auto_contrast = {
    .type = { KEEL_LAYER_HEAD("AutoContrast", "Stretches the values of images to their range."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
