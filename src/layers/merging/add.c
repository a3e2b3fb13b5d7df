/* The sum of its inputs, element by element; a dim that is 1 in some of them is used again and
 * again, as in Keras. */
#include "layers/merging/_merge.h"
#include "ops/args.h"

static keel_status emit(keel_emit *e)
{
    const keel_binary_args none = { 0 };
    bool alike = true;
    for (int i = 1; i < e->n_in; i++)
        alike = alike && keel_shape_equal(&keel_emit_in(e, i)->shape, &keel_emit_in(e, 0)->shape);
    KEEL_TRY(keel_emit_any_mask(e));
    if (alike) return keel_emit_one(e, &keel_op_add, NULL);
    e->out[0] = e->in[0];
    for (int i = 1; i < e->n_in; i++) {
        const keel_value both[2] = { e->out[0], e->in[i] };
        KEEL_TRY(keel_emit_on(e, &keel_op_plus, &none, both, 2, &e->out[0]));
    }
    return KEEL_OK;
}

const keel_layer keel_layer_add = {
    .type = { .name = "Add",
              .module = "keras.layers",
              .help = "The sum of its inputs, element by element." },
    .min_inputs = 1,
    .max_inputs = -1,
    .supports_masking = true,
    .emit = emit,
};
