/* The loops of optimizers: one pass over a tile, each element separately. So the compiler makes
 * vectors of it, and a result does not depend on where a tile begins. */
#ifndef KEEL_OPTIMIZERS_ONE_PASS_H
#define KEEL_OPTIMIZERS_ONE_PASS_H
#include "base/clones.h"
#include "optimizers/optimizer.h"
#include <math.h>

/* Each product and sum is rounded separately, as in TensorFlow, which runs one op at a time. So all
 * instruction sets give the same bits. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#endif

#define KEEL_ONE_PASS KEEL_CLONES

/* A weight after weight decay. Without decay it is not touched: an infinite weight, with which a
 * model masks what it adds up, would become NaN by w - w * 0. */
#define KEEL_DECAYED(w, decay, rate) ((decay) == 0 ? (w) : (w) - (w) * (decay) * (rate))

/* Where REAL is defined, see ops/real.h. */
#define REAL_SQRT(x)   (REAL_IS_DOUBLE ? (REAL)sqrt(x) : (REAL)sqrtf((float)(x)))
#define REAL_POW(x, y) (REAL_IS_DOUBLE ? (REAL)pow(x, y) : (REAL)powf((float)(x), (float)(y)))

/* Members of the struct that an optimizer passes to its loops, for an update `u` and its args `a`.
 */
#define KEEL_MOVE_OF(u, a)                                                                         \
    .rate = (REAL)(u)->learning_rate, .decay = (REAL)keel_decay(&(a)->common),                     \
    .scale = (REAL)(u)->scale, .clip = (REAL)(u)->clip

static inline double keel_decay(const keel_optimizer_common *c)
{
    return isnan(c->weight_decay) ? 0 : c->weight_decay;
}

/* What every rule takes of an update. */
static inline void keel_move_begin(const keel_update *u, const keel_optimizer_common *c, bool wide,
                                   keel_device_move *out)
{
    const keel_rule_numbers n = {
        .rate = u->learning_rate, .decay = keel_decay(c), .scale = u->scale, .clip = u->clip
    };
    *out = (keel_device_move){ .real = wide ? KEEL_FLOAT64 : KEEL_FLOAT32,
                               .count = u->count,
                               .w = u->w,
                               .g = u->g,
                               .number = n };
    for (int k = 0; k < KEEL_MOVE_SLOTS; k++) out->slot[k] = u->slot[k];
}

#endif
