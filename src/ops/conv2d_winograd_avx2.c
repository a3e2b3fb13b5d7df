/* Convolution by Winograd with AVX2: see conv2d_winograd_vector.h. */
#define TILE 2
#include "ops/conv2d_winograd_vector.h"
