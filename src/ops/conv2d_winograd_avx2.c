/* Convolution by Winograd with AVX2: see conv2d_winograd_vector.h. */
#include "ops/conv2d_winograd_vector.h"
