/* average_pool2d with AVX2 and FMA: see average_pool2d_vector.h. */
#include "ops/average_pool2d_vector.h"
