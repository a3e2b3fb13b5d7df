/* The logarithm of softmax along an axis. */
#include "layers/operations/_operation.h"

KEEL_AXIS_OPERATION(ops_log_softmax, "LogSoftmax", "nn", log_softmax,
                    "The logarithm of softmax along an axis.")
