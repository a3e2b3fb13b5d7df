/* Numbers cut to -1 and 1. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_hard_tanh, "HardTanh", "nn", hard_tanh, NULL, "Numbers cut to -1 and 1.")
