/* |x|. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_fabs, "Fabs", "numpy", absolute, NULL, "The size of each number.")
