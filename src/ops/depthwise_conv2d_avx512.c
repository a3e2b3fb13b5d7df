/* depthwise_conv2d with AVX-512: see depthwise_conv2d_vector.h. */
#include "ops/depthwise_conv2d_vector.h"
