/* Convolution by Winograd with AVX-512: see conv2d_winograd_vector.h. */
#include "ops/conv2d_winograd_vector.h"
