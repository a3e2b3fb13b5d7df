/* The nearest numbers that sum to one. */
#include "layers/operations/_operation.h"

KEEL_AXIS_OPERATION(ops_sparsemax, "Sparsemax", "nn", sparsemax,
                    "The nearest numbers that sum to one.")
