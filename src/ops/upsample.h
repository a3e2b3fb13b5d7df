/* Which places upsampling reads, for its kernels. */
#ifndef KEEL_OPS_UPSAMPLE_H
#define KEEL_OPS_UPSAMPLE_H
#include "ops/args.h"
#include <math.h>

/* Output o of n inputs is (1 - share) first + share second. */
typedef struct keel_upsample_place {
    int64_t first, second;
    double share;
} keel_upsample_place;

static inline keel_upsample_place keel_upsample_place_of(const keel_upsample_args *a, int64_t n,
                                                         int64_t o)
{
    if (!a->between) return (keel_upsample_place){ o / a->factor, o / a->factor, 0 };
    const double at = ((double)o + 0.5) / (double)a->factor - 0.5, first = floor(at);
    return (keel_upsample_place){ first < 0 ? 0 : (int64_t)first,
                                  (int64_t)first + 1 < n ? (int64_t)first + 1 : n - 1, at - first };
}

#endif
