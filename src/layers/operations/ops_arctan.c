/* The angle of each tangent. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_arctan, "Arctan", "numpy", arctan, NULL, "The angle of each tangent.")
