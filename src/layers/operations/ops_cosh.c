/* The hyperbolic cosine of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_cosh, "Cosh", "numpy", cosh, NULL, "The hyperbolic cosine of each number.")
