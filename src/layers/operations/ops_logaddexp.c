/* The logarithm of the sum of two powers of e. */
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_log_of_sum(e, 1);
}

KEEL_PLAIN_OPERATION(ops_logaddexp, "Logaddexp", "numpy", 2,
                     "The logarithm of the sum of two powers of e.", .wide_alone = true)
