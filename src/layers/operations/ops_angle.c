/* The angle of real numbers: pi of those below 0, 0 of the others. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value below;
    KEEL_TRY(keel_emit_is(e, KEEL_LESS, e->in[0], 0, &below));
    return keel_emit_scaled(e, below, 3.14159265358979323846, 0, e->out);
}

KEEL_PLAIN_OPERATION(ops_angle, "Angle", "numpy", 1, "The angle: 0 or pi.")
