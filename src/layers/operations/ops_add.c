/* The sum of two values. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_add, "Add", plus, "The sum of two values.", .whole = KEEL_WHOLE_KEPT)
