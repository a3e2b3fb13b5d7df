/* -1, 0 or 1. */
#include "layers/operations/_operation.h"
#include "ops/rounded.h"

static const keel_rounded_args how = { .to = KEEL_SIGN };
KEEL_UNARY_OPERATION(ops_sign, "Sign", "numpy", rounded, &how, "-1, 0 or 1.",
                     .whole = KEEL_WHOLE_KEPT)
