/* The largest over axes. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_max, "Max", KEEL_REDUCE_MAX, "The largest over axes.",
                         KEEL_REFUSE("initial", "null", "a first value"), )
