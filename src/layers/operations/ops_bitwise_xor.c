/* The bits that only one of two has. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_bitwise_xor, "BitwiseXor", KEEL_BITS_XOR, "x", "y",
                     "The bits that only one of two has.")
