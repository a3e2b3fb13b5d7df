/* True where two values differ. */
#include "layers/operations/_operation.h"

KEEL_COMPARE_OPERATION(ops_not_equal, "NotEqual", KEEL_NOT_EQUAL, "True where two values differ.")
