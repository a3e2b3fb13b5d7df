/* zero_pad2d with AVX-512: see zero_pad2d_vector.h. */
#include "ops/zero_pad2d_vector.h"
