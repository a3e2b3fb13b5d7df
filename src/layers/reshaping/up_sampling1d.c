/* Each step of [T, C] `size` times. */
#include "layers/reshaping/_upsample.h"

typedef struct args_t {
    int64_t size;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, size, "2", 1, 65536, "how often each step"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_ints size = { 1, { ((const args_t *)e->args)->size } };
    return keel_emit_upsample(e, &size, false);
}

const keel_layer keel_layer_up_sampling1d = {
    .type = { KEEL_LAYER_HEAD("UpSampling1D", "Repeats each step."), .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
