/* relu6 with AVX2 and FMA: see relu6_vector.h. */
#include "ops/relu6_vector.h"
