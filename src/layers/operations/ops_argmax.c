/* Where the largest is. */
#include "layers/operations/_arg.h"

KEEL_ARG_OPERATION(ops_argmax, "Argmax", false, "Where the largest is.")
