/* Bits moved up: bitwise_left_shift. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_left_shift, "LeftShift", KEEL_SHIFT_LEFT, "x", "y",
                     "Bits moved up: bitwise_left_shift.")
