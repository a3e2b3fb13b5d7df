/* silu with AVX2 and FMA: see silu_vector.h. */
#include "ops/silu_vector.h"
