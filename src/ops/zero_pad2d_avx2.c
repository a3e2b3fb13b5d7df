/* zero_pad2d with AVX2 and FMA: see zero_pad2d_vector.h. */
#include "ops/zero_pad2d_vector.h"
