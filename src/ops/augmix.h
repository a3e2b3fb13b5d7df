/* The arguments of the op augmix: images are blended with chains of changes of themselves. */
#ifndef KEEL_OPS_AUGMIX_H
#define KEEL_OPS_AUGMIX_H
#include "ops/draws.h"

typedef struct keel_augmix_args {
    double alpha;      /* of the Dirichlet distribution of the chains' shares, and of the Beta
                          distribution of the share of the image itself */
    uint32_t first;    /* number of the first draw */
    keel_range values; /* what comes out is clipped to */
} keel_augmix_args;

#endif
