/* Random numbers for a whole row, such as the angle by which an image is turned: a function of
 * (seed, epoch, layer, row, number of the draw), like those of dropout. */
#ifndef KEEL_OPS_DRAWS_H
#define KEEL_OPS_DRAWS_H
#include "ops/op.h"

typedef struct keel_range { /* draws are uniform in [low, high); low == high: always low */
    double low, high;
} keel_range;

/* Draw number `draw` of row `row` of the call. */
static inline double keel_draw(const keel_call *c, int64_t row, uint32_t draw, keel_range range)
{
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    uint32_t word[4];
    keel_philox(word, &chance, c->step->first_row + (uint64_t)(c->row + row), draw / 4);
    return range.low + (range.high - range.low) * keel_uniform(word[draw % 4]);
}

#endif
