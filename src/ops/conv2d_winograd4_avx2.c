/* Convolution by Winograd, larger tiles, with AVX2: see conv2d_winograd_vector.h. */
#define TILE 4
#include "ops/conv2d_winograd_vector.h"
