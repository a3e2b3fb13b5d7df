/* rescaling with AVX-512: see rescaling_vector.h. */
#include "ops/rescaling_vector.h"
