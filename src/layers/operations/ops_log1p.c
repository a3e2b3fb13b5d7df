/* The logarithm of each number and 1. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_log1p, "Log1p", "numpy", log1p, NULL,
                     "The logarithm of each number and 1.")
