/* The inverse of matrices. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_inv, "Inv", "linalg", inverse, NULL, "The inverse of matrices.")
