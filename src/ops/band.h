/* The args of ops/band.c. */
#ifndef KEEL_OPS_BAND_H
#define KEEL_OPS_BAND_H
#include <stdint.h>

typedef struct keel_band_args {
    int64_t low, high; /* which diagonals of a matrix, 0 being the main one */
} keel_band_args;

#endif
