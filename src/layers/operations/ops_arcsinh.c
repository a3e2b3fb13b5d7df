/* The inverse of the hyperbolic sine. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_arcsinh, "Arcsinh", "numpy", arcsinh, NULL,
                     "The inverse of the hyperbolic sine.")
