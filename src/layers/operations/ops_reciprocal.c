/* One over each number. */
#include "layers/operations/_operation.h"

static const keel_binary_args one_over = { .left = true, .constant = 1 };
KEEL_UNARY_OPERATION(ops_reciprocal, "Reciprocal", "numpy", divide, &one_over,
                     "One over each number.")
