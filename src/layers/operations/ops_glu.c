/* The first half by the sigmoid of the second. */
#include "layers/operations/_operation.h"

KEEL_AXIS_OPERATION(ops_glu, "Glu", "nn", glu, "The first half by the sigmoid of the second.")
