/* The loops of optimizers: one pass over a tile, every element by itself, so that the compiler
 * makes vectors of it and a result does not depend on where a tile begins. */
#ifndef KEEL_OPTIMIZERS_ONE_PASS_H
#define KEEL_OPTIMIZERS_ONE_PASS_H
#include "base/clones.h"
#include "optimizers/optimizer.h"
#include <math.h>

/* Every product and sum is rounded by itself, as TensorFlow does it one op at a time; so all
 * instruction sets give the same bits. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#endif

#define KEEL_ONE_PASS KEEL_CLONES

#define KEEL_CLAMP(x, bound) ((x) > (bound) ? (bound) : (x) < -(bound) ? -(bound) : (x))

static inline double keel_decay(const keel_optimizer_common *c)
{
    return isnan(c->weight_decay) ? 0 : c->weight_decay;
}

#endif
