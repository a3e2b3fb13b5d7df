/* sigmoid with AVX2 and FMA: see sigmoid_vector.h. */
#include "ops/sigmoid_vector.h"
