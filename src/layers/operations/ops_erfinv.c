/* What has each number as its error function. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_erfinv, "Erfinv", "math", erfinv, NULL,
                     "The inverse of the error function.")
