/* 2 to the power of each number. */
#include "layers/operations/_operation.h"

static const keel_binary_args two = { .left = true, .constant = 2 };
KEEL_UNARY_OPERATION(ops_exp2, "Exp2", "numpy", power, &two, "2 to the power of each number.")
