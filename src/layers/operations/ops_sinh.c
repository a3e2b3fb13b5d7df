/* The hyperbolic sine of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_sinh, "Sinh", "numpy", sinh, NULL, "The hyperbolic sine of each number.")
