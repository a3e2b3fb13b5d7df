/* Is it without an end? */
#include "layers/operations/_operation.h"

#include <math.h>

static keel_status emit(keel_emit *e)
{
    const keel_compare_args to = { .operands.constant = INFINITY, .is = KEEL_EQUAL };
    keel_value x;
    KEEL_TRY(keel_emit_on(e, &keel_op_absolute, NULL, e->in, 1, &x));
    return keel_emit_on(e, &keel_op_compare, &to, &x, 1, e->out);
}

KEEL_PLAIN_OPERATION(ops_isinf, "Isinf", "numpy", 1, "Is it without an end?",
                     .whole = KEEL_WHOLE_ALWAYS)
