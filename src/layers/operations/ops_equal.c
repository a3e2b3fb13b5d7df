/* True where two values are equal. */
#include "layers/operations/_operation.h"

KEEL_COMPARE_OPERATION(ops_equal, "Equal", KEEL_EQUAL, "True where two values are equal.")
