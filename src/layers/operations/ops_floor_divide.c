/* Whole quotients. */
#include "layers/operations/_operation.h"
#include "ops/rounded.h"

static keel_status emit(keel_emit *e)
{
    const keel_rounded_args floor_of = { .to = KEEL_FLOOR };
    keel_binary_args plain = { 0 };
    KEEL_TRY(keel_emit_binary(e, &keel_op_divide, &plain));
    return keel_emit_on(e, &keel_op_rounded, &floor_of, e->out, 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_floor_divide, "FloorDivide", "numpy", 2, "Whole quotients.",
                     .whole = KEEL_WHOLE_KEPT)
