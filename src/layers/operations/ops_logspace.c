/* Powers whose exponents are at equal distances between two. */
#include "layers/operations/_space.h"

static const keel_field fields[] = {
    KEEL_SPACE_FIELDS,
    KEEL_FLOAT(keel_space, base, "10", 0, 0, "of the powers"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_binary_args base = { .left = true, .constant = ((const keel_space *)e->args)->base };
    keel_value x[2], y;
    KEEL_TRY(keel_two_values(e, "start", "stop", x));
    KEEL_TRY(emit_space(e, x, &y));
    return keel_emit_on(e, &keel_op_power, &base, &y, 1, e->out);
}

KEEL_SPACE_OPERATION(ops_logspace, "Logspace", "Powers with exponents at equal distances.")
