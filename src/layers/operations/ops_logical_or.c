/* True if one of the two is true. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_logical_or, "LogicalOr", maximum, "True where one of two is.")
