/* True if all values along the axes are true. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_all, "All", KEEL_REDUCE_MIN, "True where all along the axes are.", )
