/* y = a b. */
#include "ops/x86/_binary.h"

static inline vf value(const void *args __attribute__((unused)), vf a, vf b)
{
    return vf_mul(a, b);
}

static inline vf gradient_a(vf g, vf a __attribute__((unused)), vf b __attribute__((unused)))
{
    return vf_mul(g, b);
}

static inline vf gradient_b(vf g, vf a __attribute__((unused)), vf b __attribute__((unused)))
{
    return vf_mul(g, a);
}

#define VALUE_FILE "ops/x86/_binary.h"
#include "ops/x86/_values.h"

VECTOR_BOTH(multiply, binary_prepare);
