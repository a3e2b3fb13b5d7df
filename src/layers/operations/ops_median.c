/* The number in the middle over axes. */
#include "layers/operations/_quantile.h"

KEEL_MEDIAN_OPERATION(ops_median, "Median", false, "The number in the middle over axes.")
