/* Radians as degrees. The sum with -0 keeps the sign of a zero. */
#include "layers/operations/_operation.h"

static const keel_rescaling_args factor = { .scale = 57.29577951308232, .offset = -0.0 };
KEEL_UNARY_OPERATION(ops_rad2deg, "Rad2deg", "numpy", rescaling, &factor, "Radians as degrees.")
