/* True if one value along the axes is true. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_any, "Any", KEEL_REDUCE_MAX, "True where one along the axes is.", )
