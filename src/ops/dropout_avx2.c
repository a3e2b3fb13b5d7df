/* dropout with AVX2 and FMA: see dropout_vector.h. */
#include "ops/dropout_vector.h"
