/* log(1 + exp(x)) of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_softplus, "Softplus", "nn", softplus, NULL,
                     "log(1 + exp(x)) of each number.")
