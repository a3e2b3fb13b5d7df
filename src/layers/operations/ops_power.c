/* One value to the power of another. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_power, "Power", power, "One value to the power of another.",
                      .whole = KEEL_WHOLE_KEPT)
