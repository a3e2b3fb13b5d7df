/* The largest of each of output_size windows over [D, H, W, C]. */
#include "layers/pooling/_adaptive.h"

KEEL_ADAPTIVE_LAYER(adaptive_max_pooling3d, "AdaptiveMaxPooling3D", 3, true,
                    "The largest of each of a given number of windows.")
