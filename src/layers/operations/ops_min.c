/* The smallest over axes. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_min, "Min", KEEL_REDUCE_MIN, "The smallest over axes.",
                         KEEL_REFUSE("initial", "null", "a first value"), )
