/* max_pool2d with AVX-512: see max_pool2d_vector.h. */
#include "ops/max_pool2d_vector.h"
