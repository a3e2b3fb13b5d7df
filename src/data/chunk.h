/* How many rows or elements a thread takes at once. Taking them costs a lock, which all threads
 * share, so that cheap ones are taken by the dozen; dear ones are taken one by one, so that all
 * threads have some. */
#ifndef KEEL_DATA_CHUNK_H
#define KEEL_DATA_CHUNK_H
#include <stdint.h>

/* As many as take `turn` seconds together, 1 to `most`. *cost is the moving average of what one
 * took (0: nothing is known yet), to which `each`, of late, is added. */
static inline int64_t keel_chunk(double *cost, double each, double turn, int64_t most)
{
    const double share = 0.25, least = 1e-9;
    *cost += (*cost > 0 ? share : 1) * (each - *cost);
    const double fits = turn / (*cost + least);
    const int64_t n = fits < (double)most ? (int64_t)fits : most;
    return n < 1 ? 1 : n;
}

#endif
