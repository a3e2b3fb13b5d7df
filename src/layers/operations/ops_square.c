/* The square of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_square, "Square", "numpy", square, NULL, "The square of each number.",
                     .whole = KEEL_WHOLE_KEPT)
