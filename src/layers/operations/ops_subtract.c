/* The difference of two values. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_subtract, "Subtract", subtract, "The difference of two values.",
                      .whole = KEEL_WHOLE_KEPT)
