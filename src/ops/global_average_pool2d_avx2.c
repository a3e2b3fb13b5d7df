/* global_average_pool2d with AVX2 and FMA: see global_average_pool2d_vector.h. */
#include "ops/global_average_pool2d_vector.h"
