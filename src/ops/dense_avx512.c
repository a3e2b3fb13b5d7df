/* Dense with AVX-512: see dense_vector.h. */
#include "ops/dense_vector.h"
