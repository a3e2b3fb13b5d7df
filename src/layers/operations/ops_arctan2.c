/* The angle of a point. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_arctan2, "Arctan2", arctan2, "The angle of a point.", .wide_alone = true)
