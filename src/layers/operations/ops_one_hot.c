/* 1 at the place that each number says, 0 elsewhere. */
#include "layers/operations/_one_hot.h"

static keel_status emit(keel_emit *e)
{
    return emit_one_hot(e, e->out);
}

const keel_layer keel_layer_ops_one_hot = {
    .type = { KEEL_OPERATION_HEAD("OneHot", "nn",
                                  "1 at the place that each number says, 0 elsewhere."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
