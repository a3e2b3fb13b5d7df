/* The largest of each of output_size windows over [H, W, C]. */
#include "layers/pooling/_adaptive.h"

KEEL_ADAPTIVE_LAYER(adaptive_max_pooling2d, "AdaptiveMaxPooling2D", 2, true,
                    "The largest of each of a given number of windows.")
