/* Numbers from the smallest to the largest. */
#include "layers/operations/_operation.h"

KEEL_AXIS_OPERATION(ops_sort, "Sort", "numpy", sorted, "Numbers from the smallest to the largest.",
                    .whole = KEEL_WHOLE_KEPT)
