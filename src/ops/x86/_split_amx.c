/* Products of float32 by tiles of bfloat16; the interface is _split.h.
 *
 * A float32 number x is hi + mid + lo, three bfloat16 numbers, each what the one before left over,
 * rounded to nearest: 24 bits in three times 8, so nothing is lost. Of the nine products of the
 * pieces of two numbers six are computed, the small ones first; the three left out are at most
 * 2^-24 of the whole. One product of tiles sums 32 terms apart before it touches an accumulator, so
 * that this rounds less often than a chain of multiply-adds. Accumulators start anew every 512
 * terms and are added outside, else a long sum would lose more than float32 does. With two pieces
 * there are three products, and what is left out is at most 3 parts of 2^-16.
 *
 * Where pieces would lose something. The least bfloat16 number that tiles do not take for zero is
 * 2^-126, so a low piece is lost of a number under 2^-102, and a product of pieces where that of
 * the numbers is under 2^-102: what is lost is at most 2^-126 a term. It matters where all numbers
 * of an operand are that small. And next to the largest float32 number hi rounds to infinity, which
 * mid then subtracts from itself. Packing looks at the largest magnitude of each operand and
 * refuses what is outside of [2^-100, 2^100] in product, 2^-100 to 2^127 itself, or no number; an
 * operand of zeros is fine. The caller then computes the whole call otherwise.
 *
 * Blocks are 2 x 2 tiles: 32 places times 32 columns, reduced by 32 a step. Between two products of
 * pieces only one side is loaded anew, 16 tiles for 24 products. A place's result does not depend
 * on what places are beside it: rows of a tile are multiplied one by one, and nothing else is
 * summed. */
#include "ops/x86/_split.h"
#include "base/memory.h"
#include "base/round.h"
#include "device/cpu/cpu.h"
#include "ops/x86/_split_tiles.h"
#include "ops/x86/_tile_words.h"

/* ---- splitting ------------------------------------------------------------------------------- */

/* Pieces, and the largest magnitude as bits, where NaN is largest. */
INLINE void split(vf x, vi *piece, const int pieces, vi *largest)
{
    const vi magnitude = (vi)x & 0x7fffffff, larger = magnitude > *largest;
    *largest = (magnitude & larger) | (*largest & ~larger);
    split_pieces((floats16)x, piece, pieces);
}

static int32_t largest_of(vi x)
{
    int32_t most = 0;
    for (int i = 0; i < HALF; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* See the head. */
bool keel_split_keeps(int32_t a, int32_t b, double change)
{
    const double least = 0x1p-100 * change, most = 0x1p127 / change;
    float x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    if (!(x <= most && y <= most)) return false;
    if (x == 0 || y == 0) return true;
    const double product = (double)x * (double)y;
    return x >= least && y >= least && product >= least && product <= 1 / least;
}

int32_t keel_split_largest(const float *x, int64_t n)
{
    vi most = { 0 }, ignored[1];
    for (int64_t i = 0; i < n; i += HALF) split(load_some(x + i, n - i), ignored, 1, &most);
    return largest_of(most);
}

static int64_t blocks(int64_t n)
{
    return keel_div_up(n, SIDE);
}

/* ---- weights as right operand ---------------------------------------------------------------- */

/* [block of k][block of c][tap][piece][2 tiles], behind a line that begins with the bits of the
 * largest magnitude. */
static int64_t step_halves(const keel_split *s)
{
    return 2 * s->pieces * (int64_t)TILE_HALVES;
}
static int64_t strip_halves(const keel_split *s)
{
    return blocks(s->c) * s->n_tap * step_halves(s);
}

typedef struct packer {
    keel_split s;
    bool turned;
} packer;

/* A tile of each piece from rows of W that run along the columns, ... */
INLINE void pack_along(uint16_t *to, const float *w, int64_t row, int64_t n_row, int64_t n_column,
                       const int pieces, vi *largest)
{
    for (int r = 0; r < HALF; r++) {
        vi first[3], second[3];
        split(load_some(2 * r < n_row ? w + 2 * r * row : NULL, n_column), first, pieces, largest);
        split(load_some(2 * r + 1 < n_row ? w + (2 * r + 1) * row : NULL, n_column), second, pieces,
              largest);
        EACH(p, pieces)
            *(vi *)(to + p * 2 * TILE_HALVES + r * TILE_REDUCED) = pair(first[p], second[p]);
    }
}

INLINE void narrow(uint16_t *to, vi first, vi second)
{
    *(vh *)to = __builtin_convertvector(first >> 16, vh);
    *(vh *)(to + HALF) = __builtin_convertvector(second >> 16, vh);
}

/* ... and from rows that run along the reduction. */
INLINE void pack_across(uint16_t *to, const float *w, int64_t column, int64_t n_row,
                        int64_t n_column, const int pieces, vi *largest)
{
    vi r[3][HALF];
    for (int j = 0; j < HALF; j++) {
        const float *from = j < n_column ? w + j * column : NULL;
        vi first[3], second[3];
        split(load_some(from, n_row), first, pieces, largest);
        split(load_some(from ? from + HALF : NULL, n_row - HALF), second, pieces, largest);
        EACH(p, pieces) narrow((uint16_t *)&r[p][j], first[p], second[p]);
    }
    for (int p = 0; p < pieces; p++) {
        transpose(r[p]);
        memcpy(to + p * 2 * TILE_HALVES, r[p], sizeof r[p]);
    }
}

INLINE void pack_weights(const packer *k, const float *w, uint16_t *to, vi *largest,
                         const int pieces)
{
    const keel_split *s = &k->s;
    for (int64_t j = 0; j < s->k; j += SIDE)
        for (int64_t i = 0; i < s->c; i += SIDE)
            for (int t = 0; t < s->n_tap; t++, to += step_halves(s))
                for (int h = 0; h < 2; h++) {
                    const int64_t column = j + h * HALF, n_column = s->k - column;
                    uint16_t *const tile = to + h * TILE_HALVES;
                    if (k->turned)
                        pack_across(tile, w + ((s->n_tap - 1 - t) * s->k + column) * s->c + i, s->c,
                                    s->c - i, n_column, pieces, largest);
                    else
                        pack_along(tile, w + (t * s->c + i) * s->k + column, s->k, s->c - i,
                                   n_column, pieces, largest);
                }
}

static void refresh(const keel_derived *d, const void *weight)
{
    const packer *k = d->plan;
    uint16_t *const to = (uint16_t *)((char *)d->data + TILE_BYTES);
    vi largest = { 0 };
    if (k->s.pieces == 3)
        pack_weights(k, weight, to, &largest, 3);
    else
        pack_weights(k, weight, to, &largest, 2);
    *(int32_t *)d->data = largest_of(largest);
}

keel_status keel_split_derive(keel_prepare *p, const keel_split *s, bool turned,
                              const keel_derived **got)
{
    packer *k = keel_calloc(1, sizeof *k);
    if (!k) return KEEL_ENOMEM;
    *k = (packer){ .s = *s, .turned = turned };
    keel_derived want = {
        .bytes = (size_t)(TILE_BYTES + blocks(s->k) * strip_halves(s) * (int64_t)sizeof(uint16_t)),
        .key = 0x53504c4954000000 + (uint64_t)(s->pieces * 2 + turned),
        .refresh = refresh,
        .release = keel_free,
        .plan = k,
    };
    return p->derive(p->context, &want, got);
}

bool keel_split_allowed(const keel_prepare *p, int *pieces)
{
    const keel_shape *w = &p->node->weight[0].shape;
    const int64_t c = w->dim[w->rank - 2], k = w->dim[w->rank - 1];
    if (p->node->real != KEEL_FLOAT32) return false;
    *pieces = p->float32 == KEEL_FLOAT32_FAST ? 2 : 3;
    /* smaller layers leave most of a tile empty */
    return p->float32 == KEEL_FLOAT32_FAST ? p->measured || (c >= SIDE && k >= SIDE)
                                           : p->float32 == KEEL_FLOAT32_EXACT && p->measured;
}

/* ---- places as left operand ------------------------------------------------------------------ */

/* [block of c][list][piece][place][32 channels]: a tap is an offset, and 16 neighbouring places are
 * a tile. Up to `places` and the farthest tap of the last block. */
static int64_t left_places(const keel_split *s, int64_t places)
{
    return keel_round_up(places, SIDE) + s->reach;
}

int64_t keel_split_product_scratch(const keel_split *s, int64_t places)
{
    return blocks(s->c) * s->n_list * s->pieces * left_places(s, places) * SIDE *
           (int64_t)sizeof(uint16_t);
}

INLINE void pack_places(const keel_split *s, const float *const *from, int64_t have, int64_t i,
                        uint16_t *to, int64_t places, vi *largest, const int pieces)
{
    for (int64_t q = 0; q < places; q++) {
        const float *const x = q < have && from[q] ? from[q] + i : NULL;
        vi first[3], second[3];
        split(load_some(x, s->c - i), first, pieces, largest);
        split(load_some(x ? x + HALF : NULL, s->c - i - HALF), second, pieces, largest);
        EACH(p, pieces) narrow(to + (p * places + q) * SIDE, first[p], second[p]);
    }
}

/* 32 places times 32 columns, all of the reduction: channels outside, taps inside, so that tiles of
 * places are in the first-level cache for all taps but one. */
INLINE void product_block(const keel_split *s, const uint16_t *left, int64_t places, int64_t q,
                          const uint16_t *right, float sum[SIDE][SIDE], const int pieces)
{
    const int64_t steps = blocks(s->c) * s->n_tap, run = SPLIT_REDUCTION / TILE_REDUCED;
    for (int64_t done = 0; done < steps; done += run) {
        const int64_t end = steps - done < run ? steps : done + run;
        split_zero();
        EACH(part, pieces - 1) {
            const uint16_t *b = right + done * step_halves(s);
            int64_t i = done / s->n_tap;
            int t = (int)(done % s->n_tap);
            for (int64_t at = done; at < end; at++, b += step_halves(s)) {
                const struct keel_tap *tap = &s->tap[t];
                const int64_t block = (i * s->n_list + tap->list) * pieces;
                split_step((split_left){ .at = left + (block * places + q + tap->shift) * SIDE,
                                         .piece = places * SIDE,
                                         .second = HALF * SIDE,
                                         .stride = TILE_BYTES },
                           b, pieces, part);
                if (++t == s->n_tap) t = 0, i++;
            }
        }
        split_end_run(sum, done > 0);
    }
}

static void put(float *to, const float *sum, int64_t n, const float *bias, bool adds)
{
    for (int64_t j = 0; j < n; j++) {
        const float x = bias ? sum[j] + bias[j] : sum[j];
        to[j] = adds ? to[j] + x : x;
    }
}

INLINE bool product(const keel_split *s, const float *const *const *from, float *const *to,
                    int64_t n, const keel_derived *w, const float *bias, bool adds, void *scratch,
                    const int pieces)
{
    float sum[SIDE][SIDE] __attribute__((aligned(64)));
    const int64_t places = left_places(s, n);
    uint16_t *at = scratch;
    vi largest = { 0 };
    for (int64_t i = 0; i < s->c; i += SIDE)
        for (int l = 0; l < s->n_list; l++, at += pieces * places * SIDE)
            pack_places(s, from[l], n + s->reach, i, at, places, &largest, pieces);
    if (!keel_split_keeps(largest_of(largest), *(const int32_t *)w->data, 1)) return false;
    const uint16_t *right = (const uint16_t *)((const char *)w->data + TILE_BYTES);
    tiles_begin();
    for (int64_t j = 0; j < s->k; j += SIDE, right += strip_halves(s)) {
        const int64_t width = s->k - j < SIDE ? s->k - j : SIDE;
        for (int64_t q = 0; q < n; q += SIDE) {
            product_block(s, scratch, places, q, right, sum, pieces);
            for (int64_t r = 0; r < SIDE && q + r < n; r++)
                if (to[q + r]) put(to[q + r] + j, sum[r], width, bias ? bias + j : NULL, adds);
        }
    }
    tiles_end();
    return true;
}

bool keel_split_product(const keel_split *s, const float *const *const *from, float *const *to,
                        int64_t n, const keel_derived *w, const float *bias, bool adds,
                        void *scratch)
{
    return s->pieces == 3 ? product(s, from, to, n, w, bias, adds, scratch, 3)
                          : product(s, from, to, n, w, bias, adds, scratch, 2);
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* The left operand is turned: [list][piece][32 channels][place], for one block of channels at a
 * time, a tap again an offset; the right one, [block of k][step][piece][2 tiles], has pairs of
 * places in a word. */
static int64_t turned_places(const keel_split *s, int64_t n)
{
    return keel_round_up(keel_round_up(n, SIDE) + s->reach, SIDE);
}
static int64_t turned_halves(const keel_split *s, int64_t n)
{
    return (int64_t)s->n_list * s->pieces * SIDE * turned_places(s, n);
}

int64_t keel_split_gradient_scratch(const keel_split *s, int64_t n)
{
    return (turned_halves(s, n) + blocks(s->k) * blocks(n) * step_halves(s)) *
           (int64_t)sizeof(uint16_t);
}

INLINE void pack_turned(const keel_split *s, const float *const *from, int64_t have, int64_t i,
                        uint16_t *to, int64_t places, vi *largest, const int pieces)
{
    for (int64_t q = 0; q < places; q += SIDE)
        for (int h = 0; h < 2; h++) {
            const int64_t channel = i + h * HALF;
            vi r[3][HALF];
            for (int m = 0; m < HALF; m++) {
                vi piece[2][3];
                for (int o = 0; o < 2; o++) {
                    const int64_t at = q + 2 * m + o;
                    split(load_some(at < have && from[at] ? from[at] + channel : NULL,
                                    s->c - channel),
                          piece[o], pieces, largest);
                }
                EACH(p, pieces) r[p][m] = pair(piece[0][p], piece[1][p]);
            }
            for (int p = 0; p < pieces; p++) {
                transpose(r[p]);
                for (int c = 0; c < HALF; c++)
                    *(vi *)(to + ((p * SIDE) + h * HALF + c) * places + q) = r[p][c];
            }
        }
}

INLINE void pack_pairs(const keel_split *s, const float *const *from, int64_t n, int64_t j,
                       uint16_t *to, vi *largest, const int pieces)
{
    for (int64_t q = 0; q < n; q += SIDE, to += step_halves(s))
        for (int h = 0; h < 2; h++)
            for (int r = 0; r < HALF; r++) {
                const int64_t column = j + h * HALF;
                vi piece[2][3];
                for (int o = 0; o < 2; o++) {
                    const int64_t at = q + 2 * r + o;
                    split(load_some(at < n && from[at] ? from[at] + column : NULL, s->k - column),
                          piece[o], pieces, largest);
                }
                EACH(p, pieces)
                    *(vi *)(to + (2 * p + h) * TILE_HALVES + r * TILE_REDUCED) =
                        pair(piece[0][p], piece[1][p]);
            }
}

INLINE bool gradient(const keel_split *s, const float *const *const *from,
                     const float *const *to_grad, int64_t n, float *dw, bool adds, void *scratch,
                     const int pieces)
{
    float sum[SIDE][SIDE] __attribute__((aligned(64)));
    const int64_t places = turned_places(s, n);
    uint16_t *const left = scratch, *const right = left + turned_halves(s, n);
    vi of_right = { 0 };
    for (int64_t j = 0; j < s->k; j += SIDE)
        pack_pairs(s, to_grad, n, j, right + j / SIDE * blocks(n) * step_halves(s), &of_right,
                   pieces);
    tiles_begin();
    for (int64_t i = 0; i < s->c; i += SIDE) {
        vi of_left = { 0 };
        for (int l = 0; l < s->n_list; l++)
            pack_turned(s, from[l], n + s->reach, i, left + l * pieces * SIDE * places, places,
                        &of_left, pieces);
        if (!keel_split_keeps(largest_of(of_left), largest_of(of_right), 1)) {
            tiles_end();
            return false;
        }
        for (int t = 0; t < s->n_tap; t++)
            for (int64_t j = 0; j < s->k; j += SIDE) {
                const uint16_t *b = right + j / SIDE * blocks(n) * step_halves(s);
                const uint16_t *x =
                    left + s->tap[t].list * pieces * SIDE * places + s->tap[t].shift;
                split_zero();
                EACH(part, pieces - 1)
                    for (int64_t q = 0; q < n; q += SIDE)
                        split_step((split_left){ .at = x + q,
                                                 .piece = SIDE * places,
                                                 .second = HALF * places,
                                                 .stride = places * (int64_t)sizeof(uint16_t) },
                                   b + q / SIDE * step_halves(s), pieces, part);
                split_store(sum);
                const int64_t width = s->k - j < SIDE ? s->k - j : SIDE;
                for (int64_t r = 0; r < SIDE && i + r < s->c; r++)
                    put(dw + (t * s->c + i + r) * s->k + j, sum[r], width, NULL, adds);
            }
    }
    tiles_end();
    return true;
}

bool keel_split_gradient(const keel_split *s, const float *const *const *from,
                         const float *const *to_grad, int64_t n, float *dw, bool adds,
                         void *scratch)
{
    return s->pieces == 3 ? gradient(s, from, to_grad, n, dw, adds, scratch, 3)
                          : gradient(s, from, to_grad, n, dw, adds, scratch, 2);
}

/* By stretches, so that float32 does not lose the small to the large. */
void keel_split_bias(float *db, const float *to_grad, int64_t n, int64_t k, bool adds)
{
    enum { STRETCH = 128 };
    for (int64_t j = 0; j < k; j += HALF) {
        const int64_t width = k - j < HALF ? k - j : HALF;
        vf all = { 0 };
        for (int64_t i = 0; i < n;) {
            const int64_t end = i + STRETCH < n ? i + STRETCH : n;
            vf sum = { 0 };
            for (; i < end; i++) sum += load_some(to_grad + i * k + j, width);
            all += sum;
        }
        put(db + j, (const float *)&all, width, NULL, adds);
    }
}

void keel_split_add(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}
