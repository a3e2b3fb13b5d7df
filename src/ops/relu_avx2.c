/* relu with AVX2 and FMA: see relu_vector.h. */
#include "ops/relu_vector.h"
