/* Numbers limited to a range: the larger of x and x_min, then the smaller of that and x_max. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    double x_min, x_max;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, x_min, NULL, 0, 0, "nothing is below it"),
    KEEL_FLOAT(args_t, x_max, NULL, 0, 0, "nothing is above it"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_binary_args low = { .constant = a->x_min }, high = { .constant = a->x_max };
    keel_value x;
    KEEL_TRY(keel_emit_on(e, &keel_op_maximum, &low, e->in, 1, &x));
    return keel_emit_on(e, &keel_op_minimum, &high, &x, 1, e->out);
}

KEEL_ARGS_OPERATION(ops_clip, "Clip", "numpy", 1, "Numbers cut to a range.",
                    .whole = KEEL_WHOLE_KEPT)
