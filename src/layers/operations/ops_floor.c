/* The whole number below. */
#include "layers/operations/_operation.h"
#include "ops/rounded.h"

static const keel_rounded_args how = { .to = KEEL_FLOOR };
KEEL_UNARY_OPERATION(ops_floor, "Floor", "numpy", rounded, &how, "The whole number below.")
