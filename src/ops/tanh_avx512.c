/* tanh with AVX-512: see tanh_vector.h. */
#include "ops/tanh_vector.h"
