/* Bits moved up. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_bitwise_left_shift, "BitwiseLeftShift", KEEL_SHIFT_LEFT, "x", "y",
                     "Bits moved up.")
