/* cast with AVX-512: see cast_vector.h. */
#include "ops/cast_vector.h"
