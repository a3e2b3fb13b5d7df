/* The natural logarithm of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_log, "Log", "numpy", log, NULL, "The natural logarithm of each number.")
