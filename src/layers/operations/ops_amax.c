/* The largest over axes. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_amax, "Amax", KEEL_REDUCE_MAX, "The largest over axes.",
                         .whole = KEEL_WHOLE_KEPT)
