/* Each number times its sigmoid. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_silu, "Silu", "nn", silu, NULL, "Each number times its sigmoid.")
