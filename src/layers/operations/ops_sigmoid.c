/* The logistic function of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_sigmoid, "Sigmoid", "nn", sigmoid, NULL,
                     "The logistic function of each number.")
