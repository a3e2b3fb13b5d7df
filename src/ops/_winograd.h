/* Where the tiles of Winograd's F(2x2, 3x3) lie in the images of a call: what its kernels share. */
#ifndef KEEL_OPS_WINOGRAD_H
#define KEEL_OPS_WINOGRAD_H
#include "ops/args.h"
#include "ops/op.h"

static inline int64_t ceil_of(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

static inline int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

typedef struct image { /* of one row: [h, w, c] */
    int64_t h, w, c;
} image;

static inline int64_t pixels(const image *m)
{
    return m->h * m->w * m->c;
}

/* What is convolved, and where its tiles are. Tile (i, j) of a row makes out[2 i .., 2 j ..] from
 * the 4x4 pixels of in at [2 i - top .., 2 j - left ..]; what is outside of the images is zero, or
 * not written. */
typedef struct problem {
    image in, out;
    int64_t top, left;
    int64_t down, across; /* tiles of a row */
} problem;

static inline problem problem_of(const keel_node *n, bool backward)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out.shape.dim;
    const image in = { x[0], x[1], x[2] }, out = { y[0], y[1], y[2] };
    problem p = { .in = in, .out = out, .top = a->pad[0], .left = a->pad[2] };
    if (backward) p = (problem){ .in = out, .out = in, .top = 2 - p.top, .left = 2 - p.left };
    p.down = ceil_of(p.out.h, 2);
    p.across = ceil_of(p.out.w, 2);
    return p;
}

/* 3x3 windows that move by one pixel: the only ones there are tiles for. */
static inline bool has_tiles(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    return w[0] == 3 && w[1] == 3 && a->groups == 1 && a->strides[0] == 1 && a->strides[1] == 1 &&
           a->dilation[0] == 1 && a->dilation[1] == 1;
}

typedef struct cursor { /* a tile of a call */
    int64_t row, i, j;
} cursor;

static inline cursor cursor_at(const problem *p, int64_t tile)
{
    const int64_t each = p->down * p->across, place = tile % each;
    return (cursor){ tile / each, place / p->across, place % p->across };
}

static inline void cursor_next(const problem *p, cursor *at)
{
    if (++at->j < p->across) return;
    at->j = 0;
    if (++at->i < p->down) return;
    at->i = 0;
    at->row++;
}

/* Where the 2x2 outputs of a tile are; false: there is no such pixel. */
static inline void outputs_of(const problem *p, const cursor *c, bool there[4], int64_t at[4])
{
    const int64_t h = 2 * c->i, w = 2 * c->j;
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
    {
        there[i] = h + i / 2 < p->out.h && w + i % 2 < p->out.w;
        at[i] = c->row * pixels(&p->out) + ((h + i / 2) * p->out.w + w + i % 2) * p->out.c;
    }
}

#endif
