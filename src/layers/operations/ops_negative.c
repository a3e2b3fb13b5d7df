/* Each number with the other sign. */
#include "layers/operations/_operation.h"

static const keel_rescaling_args minus = { .scale = -1 };
KEEL_UNARY_OPERATION(ops_negative, "Negative", "numpy", rescaling, &minus,
                     "Each number with the other sign.", .whole = KEEL_WHOLE_KEPT)
