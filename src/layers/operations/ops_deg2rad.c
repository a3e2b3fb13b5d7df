/* Degrees as radians. The sum with -0 keeps the sign of a zero. */
#include "layers/operations/_operation.h"

static const keel_rescaling_args factor = { .scale = 0.017453292519943295, .offset = -0.0 };
KEEL_UNARY_OPERATION(ops_deg2rad, "Deg2rad", "numpy", rescaling, &factor, "Degrees as radians.")
