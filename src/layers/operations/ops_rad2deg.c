/* Radians as degrees. */
#include "layers/operations/_operation.h"

static const keel_rescaling_args factor = { .scale = 57.29577951308232 };
KEEL_UNARY_OPERATION(ops_rad2deg, "Rad2deg", "numpy", rescaling, &factor, "Radians as degrees.")
