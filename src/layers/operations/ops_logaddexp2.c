/* The logarithm to base 2 of the sum of two powers of 2. */
#include "layers/operations/_values.h"
#include <math.h>

static keel_status emit(keel_emit *e)
{
    return keel_emit_log_of_sum(e, M_LN2);
}

KEEL_PLAIN_OPERATION(ops_logaddexp2, "Logaddexp2", "numpy", 2,
                     "The logarithm to base 2 of the sum of two powers of 2.", .wide_alone = true)
