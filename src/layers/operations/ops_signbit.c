/* True where the sign bit is set: of numbers below 0, and of -0. */
#include "layers/operations/_operation.h"
#include "ops/rounded.h"

static const keel_rounded_args sign = { .to = KEEL_SIGN_BIT };

KEEL_UNARY_OPERATION(ops_signbit, "Signbit", "numpy", rounded, &sign, "Is its sign bit set?",
                     .whole = KEEL_WHOLE_ALWAYS)
