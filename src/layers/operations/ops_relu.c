/* Zero below zero. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_relu, "Relu", "nn", relu, NULL, "Zero below zero.",
                     .whole = KEEL_WHOLE_KEPT)
