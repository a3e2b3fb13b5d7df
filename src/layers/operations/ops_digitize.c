/* How many of the ascending bounds are not above each number; of NaN all. */
#include "layers/operations/_against.h"

static keel_status emit(keel_emit *e)
{
    keel_value above;
    int64_t n = 0;
    KEEL_TRY(emit_against(e, 1, "bins", KEEL_LESS, KEEL_REDUCE_SUM, &n, &above));
    return keel_emit_scaled(e, above, -1, (double)n, e->out);
}

KEEL_PLAIN_OPERATION(ops_digitize, "Digitize", "numpy", 1, "Which bin each number is in.",
                     .places = true, .whole = KEEL_WHOLE_ALWAYS)
