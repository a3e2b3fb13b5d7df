/* True where the first is not smaller. */
#include "layers/operations/_operation.h"

KEEL_COMPARE_OPERATION(ops_greater_equal, "GreaterEqual", KEEL_GREATER_EQUAL,
                       "True where the first is not smaller.")
