/* The scaled exponential linear unit. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_selu, "Selu", "nn", selu, NULL, "The scaled exponential linear unit.")
