/* The absolute value of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_absolute, "Absolute", "numpy", absolute, NULL,
                     "The absolute value of each number.", .whole = KEEL_WHOLE_KEPT)
