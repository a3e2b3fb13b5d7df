/* For ops whose results are places along an axis, which values of narrow types tell apart only so
 * far. */
#ifndef KEEL_OPS_PLACES_H
#define KEEL_OPS_PLACES_H
#include "ops/op.h"

/* So many whole numbers from 0 on are exact in that type. */
static inline int64_t keel_places_most(keel_dtype held)
{
    return held == KEEL_BFLOAT16 ? 256 : held == KEEL_FLOAT16 ? 2048 : INT64_MAX;
}

/* KEEL_EUNSUP: the numbers of `count` places would be rounded in the type of the node's output. */
static inline keel_status keel_infer_places(const keel_node *n, const char *what, int64_t count)
{
    const int64_t most = keel_places_most(n->held);
    if (count <= most) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "%s: in %s a dim of %lld places is not supported, at most %lld are: their "
                     "numbers would be rounded",
                     what, keel_dtype_name(n->held), (long long)count, (long long)most);
}

#endif
