/* The sigmoid by straight lines. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_hard_sigmoid, "HardSigmoid", "nn", hard_sigmoid, NULL,
                     "The sigmoid by straight lines.")
