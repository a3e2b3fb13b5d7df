/* The binary cross-entropy of one element, for the sources that are compiled once for float and
 * once for double (ops/real.h): no include guard. */

/* Of a logit z; its slope by z, and the probability: finite for every z. */
static inline REAL REAL_(of_logit)(REAL z, REAL t, REAL *slope, REAL *p)
{
    const REAL e = exp(-fabs(z)), big = 1 / (1 + e); /* sigmoid(|z|) */
    *p = z >= 0 ? big : e * big;
    *slope = *p - t;
    return (z > 0 ? z : 0) - z * t + log1p(e);
}

/* Of a probability, which is clipped to [epsilon, 1 - epsilon]; no slope where it was. */
static inline REAL REAL_(of_probability)(REAL p, REAL t, REAL *slope)
{
    const REAL low = (REAL)KEEL_EPSILON, high = (REAL)(1 - KEEL_EPSILON);
    const REAL q = p < low ? low : p > high ? high : p;
    *slope = q == p ? (1 - t) / (1 - q) - t / q : 0;
    return -(t * log(q) + (1 - t) * log(1 - q));
}
