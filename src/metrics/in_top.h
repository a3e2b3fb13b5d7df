/* Is class y among the k largest predictions? As TensorFlow's in_top_k: ties with the k-th count,
 * values that are not finite do not. Included once for each REAL (see ops/real.h), hence no include
 * guard. */
#include <math.h>

static bool REAL_(in_top)(const REAL *x, int64_t n, int64_t y, int64_t k)
{
    int64_t larger = 0;
    if (y < 0 || y >= n || !isfinite(x[y])) return false;
    for (int64_t j = 0; j < n; j++) {
        if (!isfinite(x[j])) return false;
        larger += x[j] > x[y];
    }
    return larger < k;
}
