/* add with AVX2 and FMA: see add_vector.h. */
#include "ops/add_vector.h"
