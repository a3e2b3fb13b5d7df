/* Strided convolution by Winograd with AVX-512: see conv2d_winograd_strided_vector.h. */
#include "ops/conv2d_winograd_strided_vector.h"
