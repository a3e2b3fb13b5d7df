/* One less the error function. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_erfc, "Erfc", "math", erfc, NULL, "One less the error function.")
