/* The larger of a and b: see ops/maximum.c. */
#include "ops/x86/_binary.h"

static inline vf value(const void *args __attribute__((unused)), vf a, vf b)
{
    return vf_choose(vf_beats(b, a), b, a);
}

static inline vf gradient_a(vf g, vf a, vf b)
{
    return vf_choose(vf_greater(a, b), g, vf_choose(vf_equal(a, b), g, vf_zero()));
}

static inline vf gradient_b(vf g, vf a, vf b)
{
    return vf_sub(g, gradient_a(g, a, b));
}

#define VALUE_FILE "ops/x86/_binary.h"
#include "ops/x86/_values.h"

VECTOR_BOTH(maximum, binary_prepare);
