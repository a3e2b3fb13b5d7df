/* The square root of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_sqrt, "Sqrt", "numpy", sqrt, NULL, "The square root of each number.")
