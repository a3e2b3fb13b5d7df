/* leaky_relu with AVX2 and FMA: see leaky_relu_vector.h. */
#include "ops/leaky_relu_vector.h"
