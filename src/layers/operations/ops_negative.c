/* Each number with the other sign. The sum with -0 keeps the sign of a zero. */
#include "layers/operations/_operation.h"

static const keel_rescaling_args minus = { .scale = -1, .offset = -0.0 };
KEEL_UNARY_OPERATION(ops_negative, "Negative", "numpy", rescaling, &minus,
                     "Each number with the other sign.", .whole = KEEL_WHOLE_KEPT)
