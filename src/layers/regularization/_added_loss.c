/* What a call of the caller's has added to the loss; see package.h. */
#include "layers/package.h"

typedef struct args_t {
    char unused;
} args_t;

static const keel_field fields[] = { { 0 } };

static keel_status emit(keel_emit *e)
{
    e->out[0] = e->in[0];
    return keel_emit_activity(e, &(keel_activity){ .mean = 1 }, e->in[1]);
}

const keel_layer keel_layer_added_loss = {
    .type = { .name = KEEL_ADDED_LOSS,
              .module = "keel",
              .help = "Passes its first input on, and adds the mean of its second to the loss.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 2,
    .max_inputs = 2,
    .supports_masking = true,
    .uncast = true,
    .emit = emit,
};
