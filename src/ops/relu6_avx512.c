/* relu6 with AVX-512: see relu6_vector.h. */
#include "ops/relu6_vector.h"
