/* The larger of two values. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_maximum, "Maximum", maximum, "The larger of two values.",
                      .whole = KEEL_WHOLE_KEPT)
