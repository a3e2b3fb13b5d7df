/* The sum over axes. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_sum, "Sum", KEEL_REDUCE_SUM, "The sum over axes.",
                         .whole = KEEL_WHOLE_KEPT)
