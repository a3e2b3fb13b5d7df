/* As many times one number as a value has. */
#include "layers/operations/_like.h"

static keel_status emit(keel_emit *e)
{
    keel_operand fill;
    KEEL_TRY(keel_operand_at(e, 1, "fill_value", &fill));
    if (!fill.given || fill.value >= 0)
        return keel_fail(KEEL_EUNSUP, "fill_value must be a number");
    return emit_like(e, fill.constant);
}

KEEL_ARGS_OPERATION(ops_full_like, "FullLike", "numpy", 1,
                    "As many times one number as a value has.")
