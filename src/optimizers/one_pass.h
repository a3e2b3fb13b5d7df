/* The loops of optimizers: one pass over a tile, every element by itself, so that the compiler
 * makes vectors of it and a result does not depend on where a tile begins. */
#ifndef KEEL_OPTIMIZERS_ONE_PASS_H
#define KEEL_OPTIMIZERS_ONE_PASS_H
#include "optimizers/optimizer.h"
#include <math.h>

/* Every product and sum is rounded by itself, as TensorFlow does it one op at a time; so all
 * instruction sets give the same bits. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#endif

/* One version an instruction set, chosen when the library is loaded. Sanitizers instrument the
 * choosing function, which runs before they are ready, so they get the plain version. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KEEL_ONE_PASS __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define KEEL_ONE_PASS
#endif

#define KEEL_CLAMP(x, bound) ((x) > (bound) ? (bound) : (x) < -(bound) ? -(bound) : (x))

static inline double keel_decay(const keel_optimizer_common *c)
{
    return isnan(c->weight_decay) ? 0 : c->weight_decay;
}

#endif
