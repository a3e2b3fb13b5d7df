/* The smaller of a and b. */
#include "ops/x86/_extreme.h"

static inline vm wins(vf a, vf b)
{
    return vf_greater(b, a);
}

#define VALUE_FILE "ops/x86/_binary.h"
#include "ops/x86/_values.h"

VECTOR_BOTH(minimum, binary_prepare);
