/* Convolution by Winograd with AVX-512: see conv2d_winograd_vector.h. */
#define TILE 2
#include "ops/conv2d_winograd_vector.h"
