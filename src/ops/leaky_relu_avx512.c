/* leaky_relu with AVX-512: see leaky_relu_vector.h. */
#include "ops/leaky_relu_vector.h"
