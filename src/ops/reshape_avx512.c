/* reshape with AVX-512: see reshape_vector.h. */
#include "ops/reshape_vector.h"
