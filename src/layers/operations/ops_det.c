/* The determinant of matrices. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_det, "Det", "linalg", determinant, NULL, "The determinant of matrices.")
