/* The hyperbolic tangent of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_tanh, "Tanh", "numpy", tanh, NULL,
                     "The hyperbolic tangent of each number.")
