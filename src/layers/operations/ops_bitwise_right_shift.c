/* Bits moved down. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_bitwise_right_shift, "BitwiseRightShift", KEEL_SHIFT_RIGHT, "x", "y",
                     "Bits moved down.")
