/* y = a / b. */
#include "ops/x86/_binary.h"

static inline vf value(const void *args __attribute__((unused)), vf a, vf b)
{
    return vf_div(a, b);
}

static inline vf gradient_a(vf g, vf a __attribute__((unused)), vf b)
{
    return vf_div(g, b);
}

static inline vf gradient_b(vf g, vf a, vf b)
{
    return vf_sub(vf_zero(), vf_mul(g, vf_div(vf_div(a, b), b)));
}

#define VALUE_FILE "ops/x86/_binary.h"
#include "ops/x86/_values.h"

VECTOR_BOTH(divide, binary_prepare);
