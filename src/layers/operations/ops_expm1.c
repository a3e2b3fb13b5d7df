/* e to the power of each number, less 1. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_expm1, "Expm1", "numpy", expm1, NULL,
                     "e to the power of each number, less 1.")
