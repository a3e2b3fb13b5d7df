/* A smooth ramp that is 0 below -1. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_sparse_plus, "SparsePlus", "nn", sparse_plus, NULL,
                     "A smooth ramp that is 0 below -1.")
