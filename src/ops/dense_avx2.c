/* Dense with AVX2: see dense_vector.h. */
#include "ops/dense_vector.h"
