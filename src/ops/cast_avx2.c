/* cast with AVX2 and FMA: see cast_vector.h. */
#include "ops/cast_vector.h"
