/* softmax with AVX-512: see softmax_vector.h. */
#include "ops/softmax_vector.h"
