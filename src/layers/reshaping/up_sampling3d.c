/* Each place of [D, H, W, C] `size` times. */
#include "layers/reshaping/_upsample.h"

typedef struct args_t {
    keel_ints size;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, size, 3, "[2, 2, 2]", 1, 65536, "factors of depth, height and width"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    return keel_emit_upsample(e, &a->size, false);
}

const keel_layer keel_layer_up_sampling3d = {
    .type = { KEEL_LAYER_HEAD("UpSampling3D", "Makes volumes larger."), .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
