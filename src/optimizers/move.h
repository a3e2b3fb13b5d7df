/* Moves of weights on the host: see device/move.h. */
#ifndef KEEL_OPTIMIZERS_MOVE_H
#define KEEL_OPTIMIZERS_MOVE_H
#include "device/move.h"

/* All of m is the host's memory. */
void keel_move(const keel_device_move *m);
void keel_measure(const keel_device_measure *m);
void keel_check(const keel_device_check *c);

/* The sum of squares of a tile, in the order of keel_measure. */
static inline double keel_squares(keel_dtype real, const void *tile, int64_t count)
{
    double sums[2];
    keel_measure(&(keel_device_measure){
        .real = real, .count = count, .tile = count, .w = tile, .sums = sums });
    return sums[1];
}

/* The same of a tile that is made a part at a time, which begins at a multiple of
 * KEEL_MEASURE_LANES: each part adds its squares to lanes, which are 0 at first and folded at last.
 */
void keel_add_squares(keel_dtype real, const void *part, int64_t count,
                      double lanes[KEEL_MEASURE_LANES]);

/* The upper half of the lanes goes to the lower one, until one is left. n: a power of 2. */
static inline double keel_fold_lanes(double *lanes, int n)
{
    for (int by = n / 2; by > 0; by /= 2)
        for (int l = 0; l < by; l++) lanes[l] += lanes[l + by];
    return lanes[0];
}

#endif
