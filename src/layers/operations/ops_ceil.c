/* The whole number above. */
#include "layers/operations/_operation.h"
#include "ops/rounded.h"

static const keel_rounded_args how = { .to = KEEL_CEIL };
KEEL_UNARY_OPERATION(ops_ceil, "Ceil", "numpy", rounded, &how, "The whole number above.")
