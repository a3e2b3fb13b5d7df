/* The inner loops of the references. Products are added in double, in a fixed order, so a reference
 * is exact enough to check kernels against, and does not depend on the cut of the rows.
 *
 * Included where REAL is defined (see ops/real.h), so there is no include guard. BLOCK outputs are
 * kept in a small array of doubles on the stack, which the compiler turns into vector registers. */
#ifndef KEEL_SUMS_BLOCK
#define KEEL_SUMS_BLOCK 64
#endif

/* acc[j] += a b[j] */
static inline void REAL_(add_scaled)(double *acc, REAL a, const REAL *b, int64_t n)
{
    for (int64_t j = 0; j < n; j++) acc[j] += (double)a * b[j];
}

/* sum of a[j] b[j] */
static inline double REAL_(dot)(const REAL *a, const REAL *b, int64_t n)
{
    double lane[8] = { 0 };
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int l = 0; l < 8; l++) lane[l] += (double)a[j + l] * b[j + l];
    for (; j < n; j++) lane[0] += (double)a[j] * b[j];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* out[j] = acc[j], or +=. acc is rounded first, so the sum of two calls equals the sum of two
 * workers. */
static inline void REAL_(store)(REAL *out, const double *acc, int64_t n, bool adds)
{
    for (int64_t j = 0; j < n; j++) out[j] = (REAL)acc[j] + (adds ? out[j] : 0);
}

/* out[k] = sum over `count` places of dy[place][k]: the gradient of a bias. */
static inline void REAL_(sum_places)(REAL *out, const REAL *dy, int64_t count, int64_t k, bool adds)
{
    for (int64_t k0 = 0; k0 < k; k0 += KEEL_SUMS_BLOCK) {
        const int64_t nk = k - k0 < KEEL_SUMS_BLOCK ? k - k0 : KEEL_SUMS_BLOCK;
        double acc[KEEL_SUMS_BLOCK] = { 0 };
        for (int64_t i = 0; i < count; i++) REAL_(add_scaled)(acc, 1, dy + i * k + k0, nk);
        REAL_(store)(out + k0, acc, nk, adds);
    }
}
