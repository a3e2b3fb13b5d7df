/* True where it is no number: that differs from itself. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    const keel_compare_args differs = { .is = KEEL_NOT_EQUAL };
    const keel_value twice[2] = { e->in[0], e->in[0] };
    return keel_emit_on(e, &keel_op_compare, &differs, twice, 2, e->out);
}

KEEL_PLAIN_OPERATION(ops_isnan, "Isnan", "numpy", 1, "Is it no number?", .whole = KEEL_WHOLE_ALWAYS)
