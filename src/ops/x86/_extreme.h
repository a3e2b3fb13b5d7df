/* The larger or the smaller of two: wins(a, b) says whether a is beyond b. Where they are equal the
 * gradient is a's, and NaN stays NaN: see ops/maximum.c and ops/minimum.c, which end as _binary.h
 * says. */
#ifndef KEEL_OPS_X86_EXTREME_H
#define KEEL_OPS_X86_EXTREME_H
#include "ops/x86/_binary.h"

static inline vm wins(vf a, vf b);

static inline vf value(const void *args __attribute__((unused)), vf a, vf b)
{
    return vf_choose(wins(b, a), b, vf_choose(vf_equal(b, b), a, b));
}

static inline vf gradient_a(vf g, vf a, vf b)
{
    return vf_choose(wins(a, b), g, vf_choose(vf_equal(a, b), g, vf_zero()));
}

static inline vf gradient_b(vf g, vf a, vf b)
{
    return vf_sub(g, gradient_a(g, a, b));
}

#endif
