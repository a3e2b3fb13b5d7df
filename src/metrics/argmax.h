/* The index of the largest number, the first if there are several. Included once for each REAL (see
 * ops/real.h), hence no include guard. */
static int64_t REAL_(argmax)(const REAL *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (x[j] > x[best]) best = j;
    return best;
}
