/* The mean over axes. */
#include "layers/operations/_operation.h"

KEEL_REDUCTION_OPERATION(ops_mean, "Mean", KEEL_REDUCE_MEAN, "The mean over axes.")
