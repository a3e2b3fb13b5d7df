/* x - tanh(x). */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_tanh_shrink, "TanhShrink", "nn", tanh_shrink, NULL, "x - tanh(x).")
