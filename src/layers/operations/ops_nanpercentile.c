/* The number below which some hundredths of them are, without NaN. */
#include "layers/operations/_quantile.h"

KEEL_QUANTILE_OPERATION(ops_nanpercentile, "Nanpercentile", (double)((float)q / 100), true,
                        "The number below which some hundredths of them are, without NaN.")
