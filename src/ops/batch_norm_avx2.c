/* batch_norm with AVX2 and FMA: see batch_norm_vector.h. */
#include "ops/batch_norm_vector.h"
