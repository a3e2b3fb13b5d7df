/* Cube roots. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_cbrt, "Cbrt", "numpy", cbrt, NULL, "Cube roots.")
