/* The number below which a part of them is, without NaN. */
#include "layers/operations/_quantile.h"

KEEL_QUANTILE_OPERATION(ops_nanquantile, "Nanquantile", q, true,
                        "The number below which a part of them is, without NaN.")
