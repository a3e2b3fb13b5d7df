/* The quotient of two values. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_divide, "Divide", divide, "The quotient of two values.")
