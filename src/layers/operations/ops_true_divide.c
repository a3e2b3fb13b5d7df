/* The quotient of two values. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_true_divide, "TrueDivide", divide, "The quotient of two values.")
