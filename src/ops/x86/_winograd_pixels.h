/* Where the pixels of a tile of Winograd's F(T x T, W x W) are, T being TILE. */
#ifndef KEEL_OPS_X86_WINOGRAD_PIXELS_H
#define KEEL_OPS_X86_WINOGRAD_PIXELS_H
#include "ops/x86/_winograd.h"
#include "ops/x86/_winograd_points.h"

/* Those outside of the image are `zeros`. */
static inline void pixels_of(const problem *p, const float *in, const cursor *c, const float *zeros,
                             const float *at[POINTS])
{
    const int64_t h = TILE * c->i - p->top, w = TILE * c->j - p->left;
    in += c->row * pixels(&p->in);
    EACH(i, SIDE)
        EACH(j, SIDE) {
            const bool inside =
                (uint64_t)(h + i) < (uint64_t)p->in.h && (uint64_t)(w + j) < (uint64_t)p->in.w;
            at[SIDE * i + j] = inside ? in + ((h + i) * p->in.w + w + j) * p->in.c : zeros;
        }
}

#endif
