/* Numbers without their fraction. */
#include "layers/operations/_operation.h"
#include "ops/rounded.h"

static const keel_rounded_args how = { .to = KEEL_TRUNC };
KEEL_UNARY_OPERATION(ops_trunc, "Trunc", "numpy", rounded, &how, "Numbers without their fraction.",
                     .whole = KEEL_WHOLE_KEPT)
