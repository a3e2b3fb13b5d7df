/* True where the first is not larger. */
#include "layers/operations/_operation.h"

KEEL_COMPARE_OPERATION(ops_less_equal, "LessEqual", KEEL_LESS_EQUAL,
                       "True where the first is not larger.")
