/* rescaling with AVX2 and FMA: see rescaling_vector.h. */
#include "ops/rescaling_vector.h"
