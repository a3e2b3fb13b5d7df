/* The product of two values. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_multiply, "Multiply", multiply, "The product of two values.",
                      .whole = KEEL_WHOLE_KEPT)
