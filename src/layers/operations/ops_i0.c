/* The modified Bessel function of order 0. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_i0, "I0", "numpy", bessel_i0, NULL, "The Bessel function I0.")
