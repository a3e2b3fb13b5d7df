/* add with AVX-512: see add_vector.h. */
#include "ops/add_vector.h"
