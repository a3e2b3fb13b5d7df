/* The greatest common divisor. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_gcd, "Gcd", KEEL_GREATEST_DIVISOR, "x1", "x2",
                     "The greatest common divisor.")
