/* The logarithm of the sigmoid. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_log_sigmoid, "LogSigmoid", "nn", log_sigmoid, NULL,
                     "The logarithm of the sigmoid.")
