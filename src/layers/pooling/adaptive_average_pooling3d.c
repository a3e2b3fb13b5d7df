/* The mean of each of output_size windows over [D, H, W, C]. */
#include "layers/pooling/_adaptive.h"

KEEL_ADAPTIVE_LAYER(adaptive_average_pooling3d, "AdaptiveAveragePooling3D", 3, false,
                    "The mean of each of a given number of windows.")
