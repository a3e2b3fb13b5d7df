/* What is left of a division. */
#include "layers/operations/_operation.h"

KEEL_BINARY_OPERATION(ops_mod, "Mod", mod, "What is left of a division.", .wide_alone = true,
                      .whole = KEEL_WHOLE_KEPT)
