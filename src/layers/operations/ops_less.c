/* True where the first is smaller. */
#include "layers/operations/_operation.h"

KEEL_COMPARE_OPERATION(ops_less, "Less", KEEL_LESS, "True where the first is smaller.")
