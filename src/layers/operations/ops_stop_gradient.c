/* The same numbers; no gradient flows back. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_stop_gradient, "StopGradient", "core", stop_gradient, NULL,
                     "The same numbers; no gradient flows back.", .whole = KEEL_WHOLE_KEPT)
