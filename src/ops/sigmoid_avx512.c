/* sigmoid with AVX-512: see sigmoid_vector.h. */
#include "ops/sigmoid_vector.h"
