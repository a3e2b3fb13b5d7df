/* global_average_pool2d with AVX-512: see global_average_pool2d_vector.h. */
#include "ops/global_average_pool2d_vector.h"
