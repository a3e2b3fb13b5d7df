/* Each number with the other sign. The sum with -0 keeps the sign of a zero; whole numbers have one
 * zero. */
#include "layers/operations/_operation.h"

static const keel_rescaling_args minus = { .scale = -1, .offset = -0.0 }, whole = { .scale = -1 };
KEEL_UNARY_OPERATION(ops_negative, "Negative", "numpy", rescaling,
                     keel_emit_is_whole(e, 0) ? &whole : &minus, "Each number with the other sign.",
                     .whole = KEEL_WHOLE_KEPT)
