/* dropout with AVX-512: see dropout_vector.h. */
#include "ops/dropout_vector.h"
