/* x hard_sigmoid(x). */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_hard_silu, "HardSilu", "nn", hard_silu, NULL, "x hard_sigmoid(x).")
