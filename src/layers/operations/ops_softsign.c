/* x / (1 + |x|) of each number. */
#include "layers/operations/_operation.h"

KEEL_UNARY_OPERATION(ops_softsign, "Softsign", "nn", softsign, NULL,
                     "x / (1 + |x|) of each number.")
