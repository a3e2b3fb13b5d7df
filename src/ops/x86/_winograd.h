/* Where the tiles of Winograd's F(T x T, W x W) lie in the images of a call: T outputs and W taps
 * of a window along each direction. */
#ifndef KEEL_OPS_X86_WINOGRAD_H
#define KEEL_OPS_X86_WINOGRAD_H
#include "ops/args.h"
#include "ops/op.h"

#ifndef TAPS
#define TAPS 3 /* W, of the kernels of the file that includes this */
#endif

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

/* What is convolved, and where its tiles are. Tile (i, j) of a row makes the T x T outputs from [T
 * i, T j] on from the S x S pixels of `in` from [T i - top, T j - left] on, S being T + W - 1.
 * Pixels outside of the images are zero, or not written. */
typedef struct problem {
    image in, out;
    int64_t tile; /* T */
    int64_t top, left;
    int64_t down, across; /* tiles of a row */
} problem;

static inline problem problem_of(const keel_node *n, bool backward, int64_t tile)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out[0].shape.dim;
    const image in = { x[0], x[1], x[2] }, out = { y[0], y[1], y[2] };
    problem p = { .in = in, .out = out, .top = a->pad[0], .left = a->pad[2] };
    if (backward)
        p = (problem){ .in = out, .out = in, .top = TAPS - 1 - p.top, .left = TAPS - 1 - p.left };
    p.tile = tile;
    p.down = ceil_of(p.out.h, tile);
    p.across = ceil_of(p.out.w, tile);
    return p;
}

/* W x W windows that move by one pixel; there are tiles for no others. */
static inline bool has_tiles(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    return w[0] == TAPS && w[1] == TAPS && a->groups == 1 && a->strides[0] == 1 &&
           a->strides[1] == 1 && a->dilation[0] == 1 && a->dilation[1] == 1;
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

/* Where the outputs of a tile are; false: there is no such pixel. tile: p->tile, as a constant. */
static inline void outputs_of(const problem *p, const cursor *c, const int tile, bool there[],
                              int64_t at[])
{
    const int64_t h = tile * c->i, w = tile * c->j;
    _Pragma("GCC unroll 16") for (int i = 0; i < tile * tile; i++)
    {
        there[i] = h + i / tile < p->out.h && w + i % tile < p->out.w;
        at[i] = c->row * pixels(&p->out) + ((h + i / tile) * p->out.w + w + i % tile) * p->out.c;
    }
}

/* The last point is infinity, but for S = 5, which has none. Points of that line contribute only to
 * the lowest outputs of a tile, and points of that column only to the rightmost. The last tiles of
 * an image that ends before these outputs leave such points out, which saves 12 % of the products
 * for 7x7 outputs. So tiles are counted for each kind of point. */
enum { KINDS = 4 }; /* 1: of the last column; 2: of the last line; 3: of both; 0: the others */

static inline int kind_of(bool last_line, bool last_column)
{
    return 2 * last_line + last_column;
}

static inline bool has_last(const problem *p, int64_t i, int64_t outputs)
{
    return p->tile + TAPS - 1 == 5 || p->tile * (i + 1) <= outputs;
}

static inline bool has_lowest(const problem *p, const cursor *c)
{
    return has_last(p, c->i, p->out.h);
}

static inline void count_tile(const problem *p, const cursor *c, int64_t tiles[KINDS])
{
    const bool lowest = has_lowest(p, c), rightmost = has_last(p, c->j, p->out.w);
    tiles[0]++;
    tiles[1] += rightmost;
    tiles[2] += lowest;
    tiles[3] += lowest && rightmost;
}

/* Counts how many of the n tiles from `c` on have points of each kind. */
static inline void count_tiles(const problem *p, cursor c, int64_t n, int64_t tiles[KINDS])
{
    for (int kind = 0; kind < KINDS; kind++) tiles[kind] = 0;
    for (; n > 0; n--, cursor_next(p, &c)) count_tile(p, &c, tiles);
}

/* Products of a channel and a filter for an image: points of its tiles. */
static inline int64_t tile_products(const problem *p)
{
    const int64_t side = p->tile + TAPS - 1;
    return (side * p->down - !has_last(p, p->down - 1, p->out.h)) *
           (side * p->across - !has_last(p, p->across - 1, p->out.w));
}

#endif
