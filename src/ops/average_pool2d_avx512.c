/* average_pool2d with AVX-512: see average_pool2d_vector.h. */
#include "ops/average_pool2d_vector.h"
