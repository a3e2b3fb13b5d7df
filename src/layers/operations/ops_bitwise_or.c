/* The bits that one of two has. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_bitwise_or, "BitwiseOr", KEEL_BITS_OR, "x", "y",
                     "The bits that one of two has.")
