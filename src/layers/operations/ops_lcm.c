/* The least common multiple. */
#include "layers/operations/_whole.h"

KEEL_WHOLE_OPERATION(ops_lcm, "Lcm", KEEL_LEAST_MULTIPLE, "x1", "x2", "The least common multiple.")
