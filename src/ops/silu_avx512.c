/* silu with AVX-512: see silu_vector.h. */
#include "ops/silu_vector.h"
