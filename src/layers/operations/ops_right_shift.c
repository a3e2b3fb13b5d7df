/* Bits moved down: bitwise_right_shift. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_right_shift, "RightShift", KEEL_SHIFT_RIGHT, "x", "y",
                     "Bits moved down: bitwise_right_shift.")
