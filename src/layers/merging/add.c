/* The sum of its inputs, element by element. */
#include "layers/layer.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_op(e, "add", NULL, e->in, e->n_in, NULL, NULL, 0, &e->out);
}

const keel_layer keel_layer_add = {
    .type = { .name = "Add",
              .module = "keras.layers",
              .help = "The sum of its inputs, element by element." },
    .min_inputs = 1,
    .max_inputs = -1,
    .emit = emit,
};
