/* Numbers at equal distances between two. */
#include "layers/operations/_space.h"

static const keel_field fields[] = {
    KEEL_SPACE_FIELDS,
    KEEL_REFUSE("retstep", "false", "Keras fails on it in a model"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_value x[2];
    KEEL_TRY(keel_two_values(e, "start", "stop", x));
    return emit_space(e, x, e->out);
}

KEEL_SPACE_OPERATION(ops_linspace, "Linspace", "Numbers at equal distances between two.")
