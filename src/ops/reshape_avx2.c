/* reshape with AVX2 and FMA: see reshape_vector.h. */
#include "ops/reshape_vector.h"
