/* Convolution by 1x1 windows with AVX-512: see conv2d_1x1_vector.h. */
#include "ops/conv2d_1x1_vector.h"
