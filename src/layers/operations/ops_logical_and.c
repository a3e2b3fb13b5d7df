/* True if both are true. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_logical_and, "LogicalAnd", multiply, "True where both are.")
