/* The exponential of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_exp, "Exp", "numpy", exponential, NULL, "The exponential of each number.")
