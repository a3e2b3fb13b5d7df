/* softmax with AVX2 and FMA: see softmax_vector.h. */
#include "ops/softmax_vector.h"
