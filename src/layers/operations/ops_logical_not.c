/* True if the value is false. */
#include "layers/operations/_operation.h"

static const keel_rescaling_args inverse = { .scale = -1, .offset = 1 };
KEEL_UNARY_OPERATION(ops_logical_not, "LogicalNot", "numpy", rescaling, &inverse,
                     "True where it is false.")
