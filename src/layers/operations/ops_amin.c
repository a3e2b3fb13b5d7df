/* The smallest over axes. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_amin, "Amin", KEEL_REDUCE_MIN, "The smallest over axes.",
                         .whole = KEEL_WHOLE_KEPT)
