/* True where the first is larger. */
#include "layers/operations/_operation.h"

KEEL_COMPARE_OPERATION(ops_greater, "Greater", KEEL_GREATER, "True where the first is larger.")
