/* Terms and tiles of convolutions with 3x3 windows that move by 2x2, by Winograd's F(2, 2) on every
 * other pixel. In one dimension taps 0 and 2 look at even pixels e (of the padded image), tap 1 at
 * odd ones o:
 *
 *     y0 = e0 g0 + e1 g2 + o0 g1 = (e0 - e1) g0 + e1 (g0 + g2) + o0 g1
 *     y1 = e1 g0 + e2 g2 + o1 g1 = (e2 - e1) g2 + e1 (g0 + g2) + o1 g1
 *
 * five products for six. A term is V[v] U[u], a part of M[m]: V made of the 5 pixels e0 o0 e1 o1
 * e2, U one of g0, g0 + g2, g2 and g1, M what y0 alone has, what both have, what y1 alone has. The
 * gradient of the weights takes the same terms: V[v] dM[m] is a part of dU[u].
 *
 * Backward the 3 pixels d0 d1 d2 of dy make 4 of dx:
 *
 *     e0 = d0 g2 + d1 g0 = (d0 - d1) g2 + d1 (g0 + g2)    o0 = d1 g1, or d0 g1
 *     e1 = d1 g2 + d2 g0 = (d2 - d1) g0 + d1 (g0 + g2)    o1 = d2 g1, or d1 g1
 *
 * V being made of d, and M what e0, both and e1 have, o0 and o1. A tile begins with the pixel of dx
 * that is first behind the padding: an even one, or an odd one.
 *
 * Where half of a tile or less is left over, it takes the direct three products. In two dimensions
 * all is in pairs: a term for each pair of terms, of 5 x 5 V, 4 x 4 U and 3 x 3 M; backward of
 * 4 x 4 V and 5 x 5 M. */
#ifndef KEEL_OPS_X86_WINOGRAD_STRIDED_H
#define KEEL_OPS_X86_WINOGRAD_STRIDED_H
#include "ops/x86/_winograd.h"

typedef struct term {
    int8_t v, u, m;
} term;

enum side { FORWARD, EVEN, ODD }; /* backward: of the first pixel */

/* Of a whole tile, and of a half one, whose V are e0, e1 and o0, or d0 and d1, as they are. */
static const struct {
    int n;
    term term[5];
} all_terms[3][2] = {
    [FORWARD] = { { 5, { { 0, 0, 0 }, { 3, 3, 0 }, { 1, 1, 1 }, { 2, 2, 2 }, { 4, 3, 2 } } },
                  { 3, { { 0, 0, 0 }, { 2, 2, 0 }, { 3, 3, 0 } } } },
    [EVEN] = { { 5, { { 0, 2, 0 }, { 1, 1, 1 }, { 2, 0, 2 }, { 1, 3, 3 }, { 3, 3, 4 } } },
               { 3, { { 0, 2, 0 }, { 1, 0, 0 }, { 1, 3, 3 } } } },
    [ODD] = { { 5, { { 0, 2, 0 }, { 1, 1, 1 }, { 2, 0, 2 }, { 3, 3, 3 }, { 1, 3, 4 } } },
              { 3, { { 0, 2, 0 }, { 1, 0, 0 }, { 0, 3, 3 } } } },
};

/* One of the two dimensions. Tile t reads pixels from first + t * read on, and makes those from
 * t * made on. */
typedef struct axis {
    int64_t in, out, tiles, first, read, made;
    enum side side;
    bool half; /* the last tile is one */
} axis;

static inline axis axis_of(int64_t x, int64_t y, int64_t pad, bool backward)
{
    axis a = { .in = x, .out = y, .first = -pad, .read = 4, .made = 2, .side = FORWARD };
    if (backward)
        a = (axis){ .in = y,
                    .out = x,
                    .first = (pad + 1) / 2 - 1,
                    .read = 2,
                    .made = 4,
                    .side = pad % 2 ? ODD : EVEN };
    a.tiles = ceil_of(a.out, a.made);
    a.half = a.out - (a.tiles - 1) * a.made <= a.made / 2;
    return a;
}

/* Terms of a half tile whose pixel is outside are left out. Returns how many there are. */
static inline int terms_of(const axis *a, bool half, term out[5])
{
    int kept = 0;
    for (int i = 0; i < all_terms[a->side][half].n; i++) {
        const term t = all_terms[a->side][half].term[i];
        const int pixel = a->side == FORWARD && t.v == 3 ? 1 : t.v;
        const int64_t at = a->first + (a->tiles - 1) * a->read + pixel;
        if (!half || (at >= 0 && at < a->in)) out[kept++] = t;
    }
    return kept;
}

typedef struct strided { /* what is convolved */
    axis axis[2];
    int64_t c, k;       /* channels in and out */
    int v_side, m_side; /* V and M of a line */
} strided;

static inline strided strided_of(const keel_node *n, bool backward)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out[0].shape.dim;
    return (strided){ .axis = { axis_of(x[0], y[0], a->pad[0], backward),
                                axis_of(x[1], y[1], a->pad[2], backward) },
                      .c = backward ? y[2] : x[2],
                      .k = backward ? x[2] : y[2],
                      .v_side = backward ? 4 : 5,
                      .m_side = backward ? 5 : 3 };
}

static inline bool has_strided_tiles(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    return w[0] == 3 && w[1] == 3 && a->groups == 1 && a->strides[0] == 2 && a->strides[1] == 2 &&
           a->dilation[0] == 1 && a->dilation[1] == 1;
}

static inline int64_t tiles_of(const strided *s) /* of a row */
{
    return s->axis[0].tiles * s->axis[1].tiles;
}

/* Products of a channel and a filter in a row: terms of its tiles. */
static inline int64_t products_of(const strided *s)
{
    int64_t all = 1;
    for (int i = 0; i < 2; i++) {
        const axis *a = &s->axis[i];
        term out[5];
        all *= 5 * (a->tiles - a->half) + (a->half ? terms_of(a, true, out) : 0);
    }
    return all;
}

/* Kinds of tiles: 0 whole, 1 half across, 2 half down, 3 both. */
enum { TILE_KINDS = 4 };

typedef struct place { /* of a tile of a call */
    int64_t row, i, j;
    int kind;
} place;

static inline bool is_half(const axis *a, int64_t tile)
{
    return a->half && tile == a->tiles - 1;
}

static inline place place_at(const strided *s, int64_t tile)
{
    const int64_t each = tiles_of(s), at = tile % each;
    place p = { .row = tile / each, .i = at / s->axis[1].tiles, .j = at % s->axis[1].tiles };
    p.kind = 2 * is_half(&s->axis[0], p.i) + is_half(&s->axis[1], p.j);
    return p;
}

static inline void place_next(const strided *s, place *p)
{
    if (++p->j == s->axis[1].tiles) {
        p->j = 0;
        if (++p->i == s->axis[0].tiles) {
            p->i = 0;
            p->row++;
        }
    }
    p->kind = 2 * is_half(&s->axis[0], p->i) + is_half(&s->axis[1], p->j);
}

/* A block of tiles: in buffers they lie by kind. */
typedef struct block {
    place from;
    int64_t n, first[TILE_KINDS], count[TILE_KINDS];
} block;

static inline block block_of(const strided *s, int64_t tile, int64_t n)
{
    block b = { .from = place_at(s, tile), .n = n };
    place p = b.from;
    for (int64_t t = 0; t < n; t++, place_next(s, &p)) b.count[p.kind]++;
    for (int i = 1; i < TILE_KINDS; i++) b.first[i] = b.first[i - 1] + b.count[i - 1];
    return b;
}

typedef struct walk { /* over the tiles of a block */
    place at;
    int64_t left, slot; /* slot: where it is in buffers */
    int64_t next[TILE_KINDS];
} walk;

static inline walk walk_of(const block *b)
{
    walk w = { .at = b->from, .left = b->n };
    for (int i = 0; i < TILE_KINDS; i++) w.next[i] = b->first[i];
    w.slot = w.next[w.at.kind]++;
    return w;
}

static inline void walk_on(const strided *s, walk *w)
{
    if (--w->left == 0) return;
    place_next(s, &w->at);
    w->slot = w->next[w->at.kind]++;
}

/* What a kind of tile multiplies: for each M the terms that it is the sum of. */
typedef struct recipe {
    int n;
    struct {
        int m, n, v[9], u[9];
    } sum[25];
} recipe;

static inline bool has_m(int side, bool half, int m) /* the M of a half are 0, and backward 3 */
{
    return !half || m == 0 || (side == 5 && m == 3);
}

static inline void recipe_of(const strided *s, int kind, recipe *r)
{
    term down[5], across[5];
    const int side = s->m_side, n_down = terms_of(&s->axis[0], kind / 2, down);
    const int n_across = terms_of(&s->axis[1], kind % 2, across);
    r->n = 0;
    for (int m = 0; m < side * side; m++) {
        if (!has_m(side, kind / 2, m / side) || !has_m(side, kind % 2, m % side)) continue;
        int n = 0;
        for (int i = 0; i < n_down; i++)
            for (int j = 0; j < n_across; j++) {
                if (side * down[i].m + across[j].m != m) continue;
                r->sum[r->n].v[n] = s->v_side * down[i].v + across[j].v;
                r->sum[r->n].u[n++] = 4 * down[i].u + across[j].u;
            }
        r->sum[r->n].m = m;
        r->sum[r->n++].n = n;
    }
}

#endif
