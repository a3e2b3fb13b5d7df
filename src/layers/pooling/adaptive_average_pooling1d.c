/* The mean of each of output_size windows over [T, C]. */
#include "layers/pooling/_adaptive.h"

KEEL_ADAPTIVE_LAYER(adaptive_average_pooling1d, "AdaptiveAveragePooling1D", 1, false,
                    "The mean of each of a given number of windows.")
