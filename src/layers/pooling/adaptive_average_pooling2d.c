/* The mean of each of output_size windows over [H, W, C]. */
#include "layers/pooling/_adaptive.h"

KEEL_ADAPTIVE_LAYER(adaptive_average_pooling2d, "AdaptiveAveragePooling2D", 2, false,
                    "The mean of each of a given number of windows.")
