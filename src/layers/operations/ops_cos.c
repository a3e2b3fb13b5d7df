/* The cosine of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_cos, "Cos", "numpy", cos, NULL, "The cosine of each number.")
