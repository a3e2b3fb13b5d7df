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

#endif
