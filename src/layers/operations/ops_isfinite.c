/* Is it a finite number? */
#include "layers/operations/_operation.h"

#include <math.h>

static keel_status emit(keel_emit *e)
{
    const keel_compare_args to = { .operands.constant = INFINITY, .is = KEEL_LESS };
    keel_value x;
    KEEL_TRY(keel_emit_on(e, &keel_op_absolute, NULL, e->in, 1, &x));
    return keel_emit_on(e, &keel_op_compare, &to, &x, 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_isfinite, "Isfinite", "numpy", 1, "Is it a finite number?",
                     .whole = KEEL_WHOLE_ALWAYS)
