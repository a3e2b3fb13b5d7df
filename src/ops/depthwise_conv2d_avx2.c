/* depthwise_conv2d with AVX2 and FMA: see depthwise_conv2d_vector.h. */
#include "ops/depthwise_conv2d_vector.h"
