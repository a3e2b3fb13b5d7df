/* The error function of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_erf, "Erf", "math", erf, NULL, "The error function of each number.")
