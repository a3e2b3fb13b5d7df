/* Numbers that sum to one along an axis. */
#include "layers/operations/_operation.h"

KEEL_AXIS_OPERATION(ops_softmax, "Softmax", "nn", softmax, "Numbers that sum to one along an axis.")
