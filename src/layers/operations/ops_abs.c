/* Each number without its sign. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_abs, "Abs", "numpy", absolute, NULL, "Each number without its sign.",
                     .whole = KEEL_WHOLE_KEPT)
