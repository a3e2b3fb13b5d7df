/* Where the largest number of a list stands, the first of them if there are several. Included where
 * REAL is defined (see ops/real.h), hence without a guard. */
static int64_t REAL_(argmax)(const REAL *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (x[j] > x[best]) best = j;
    return best;
}
