/* The bits that both have. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_bitwise_and, "BitwiseAnd", KEEL_BITS_AND, "x", "y",
                     "The bits that both have.")
