/* max_pool2d with AVX2 and FMA: see max_pool2d_vector.h. */
#include "ops/max_pool2d_vector.h"
