/* Where the smallest is. */
#include "layers/operations/_arg.h"

KEEL_ARG_OPERATION(ops_argmin, "Argmin", true, "Where the smallest is.")
