/* The arguments of the op equalize: each channel of an image gets values that are spread evenly. */
#ifndef KEEL_OPS_EQUALIZE_H
#define KEEL_OPS_EQUALIZE_H
#include "ops/draws.h"

enum { KEEL_EQUALIZE_BINS_MAX = 1 << 20 };

typedef struct keel_equalize_args {
    int64_t bins;      /* of the histogram, 1 to KEEL_EQUALIZE_BINS_MAX */
    keel_range values; /* of the images */
} keel_equalize_args;

#endif
