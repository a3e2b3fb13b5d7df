/* The number below which some hundredths of them are. */
#include "layers/operations/_quantile.h"

KEEL_QUANTILE_OPERATION(ops_percentile, "Percentile", (double)((float)q / 100), false,
                        "The number below which some hundredths of them are.")
