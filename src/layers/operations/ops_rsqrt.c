/* One over the square root of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_rsqrt, "Rsqrt", "math", rsqrt, NULL,
                     "One over the square root of each number.")
