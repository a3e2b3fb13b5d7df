/* relu with AVX-512: see relu_vector.h. */
#include "ops/relu_vector.h"
