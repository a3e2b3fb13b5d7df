/* The number in the middle over axes, without NaN. */
#include "layers/operations/_quantile.h"

KEEL_MEDIAN_OPERATION(ops_nanmedian, "Nanmedian", true,
                      "The number in the middle over axes, without NaN.")
