/* A ramp between -1 and 1. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_sparse_sigmoid, "SparseSigmoid", "nn", sparse_sigmoid, NULL,
                     "A ramp between -1 and 1.")
