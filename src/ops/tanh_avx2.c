/* tanh with AVX2 and FMA: see tanh_vector.h. */
#include "ops/tanh_vector.h"
