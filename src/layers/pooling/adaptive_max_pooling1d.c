/* The largest of each of output_size windows over [T, C]. */
#include "layers/pooling/_adaptive.h"

KEEL_ADAPTIVE_LAYER(adaptive_max_pooling1d, "AdaptiveMaxPooling1D", 1, true,
                    "The largest of each of a given number of windows.")
