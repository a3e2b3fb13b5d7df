/* The sine of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_sin, "Sin", "numpy", sin, NULL, "The sine of each number.")
