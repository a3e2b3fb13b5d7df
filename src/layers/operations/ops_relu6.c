/* Between zero and six. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_relu6, "Relu6", "nn", relu6, NULL, "Between zero and six.",
                     .whole = KEEL_WHOLE_KEPT)
