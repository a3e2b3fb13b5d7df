/* x / max(sqrt(sum x^2), 1e-12), the sum over some dims of each place. */
#include "layers/normalization/_unit.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "-1", -7, 7, "the dims along which the length becomes 1"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    bool over[KEEL_RANK_MAX] = { false };
    e->out[0] = e->in[0];
    for (int i = 0; i < a->axis.count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, a->axis.at[i], &d));
        over[d] = true;
    }
    return keel_emit_unit(e, over, 1e-12, &e->out[0]);
}

/* One axis is a number there, not a list. */
const keel_layer keel_layer_unit_normalization = {
    .type = { KEEL_LAYER_HEAD("UnitNormalization", "Divides each place of a row by its length."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .emit = emit,
};
