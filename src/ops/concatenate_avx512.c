/* concatenate with AVX-512: see concatenate_vector.h. */
#include "ops/concatenate_vector.h"
