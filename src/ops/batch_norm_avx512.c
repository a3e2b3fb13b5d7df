/* batch_norm with AVX-512: see batch_norm_vector.h. */
#include "ops/batch_norm_vector.h"
