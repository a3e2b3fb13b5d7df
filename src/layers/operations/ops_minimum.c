/* The smaller of two values. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_minimum, "Minimum", minimum, "The smaller of two values.",
                      .whole = KEEL_WHOLE_KEPT)
