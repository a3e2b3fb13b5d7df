/* concatenate with AVX2 and FMA: see concatenate_vector.h. */
#include "ops/concatenate_vector.h"
