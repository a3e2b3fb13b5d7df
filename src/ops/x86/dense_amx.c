/* dense on bfloat16 values by the tiles of AMX, for rows of one place:
 *
 *     forward   y  [n, K] = x  [n, C] W  [C, K] + b
 *     backward  dx [n, C] = dy [n, K] Wt [K, C]
 *     weights   dW [C, K] = xt [C, n] dy [n, K]     a tile of it, over everybody's rows
 *
 * Each is made of blocks: 2 x 2 tiles, 32 x 32 sums in float32, to which a step adds the products
 * of 32 numbers by four loads and four products of tiles.
 *
 *              right   6   7        Left tiles are 16 rows of 32 numbers as they lie in memory;
 * right left  4          0   1        tiles are pairs of rows, 16 x 16 words. A block that has no
 * more 5          2   3        than 16 rows or columns leaves out tiles.
 *
 * What takes time is not the products. Sums must be stored, rounded and written, and the tiles
 * multiply by themselves meanwhile: so the block before is finished a few rows at each step of this
 * one. Weights are read from copies in the order of the right tiles, which are made after they have
 * moved; values are read where they are, but for the end of a row that is no multiple of 32 numbers
 * long, and for a last block of rows, which are copied and filled up with zeros: what lies behind
 * them in memory may be NaN. dy is packed once for all tiles of a weight; x is turned for each.
 *
 * A row of a tile is multiplied by itself, and steps go from the first number to the last, of
 * places in the order of the step: one device and many give the same bits. */
#include "base/memory.h"
#include "base/round.h"
#include "device/cpu/cpu.h"
#include "ops/op.h"
#include "ops/x86/_tile_words.h"
#include "tensor/bfloat16.h"

KEEL_USES_OP(dense);

/* What the processor must have. In a test the tiles are plain C, and the rest needs AVX-512. */
#ifdef KEEL_TILES_EMULATED
enum { NEEDS = KEEL_CPU_AVX512 };
#else
enum { NEEDS = KEEL_CPU_AMX };
#endif

/* PLACES: rows that pass a strip of weights, which stays in the cache meanwhile. CHUNK: rows of a
 * step whose dy is packed at a time, fewer where there are many outputs (chunk_of). */
enum { PLACES = 256, CHUNK = 512, KEPT_MOST = 1 << 20, STEP_HALVES = 2 * TILE_HALVES };

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

static int64_t blocks(int64_t n)
{
    return keel_div_up(n, SIDE);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The first `count` of 16 numbers as words, the others 0; p NULL: all 0. */
INLINE vi load_halves(const keel_bf16 *p, int64_t count)
{
    vh x = { 0 };
    if (p && count >= HALF)
        x = *(const vh *)p;
    else if (p && count > 0)
        memcpy(&x, p, (size_t)count * sizeof *p);
    return __builtin_convertvector(x, vi);
}

/* Rounded to nearest even in the upper halves; below them 0. NaN stays NaN. */
INLINE vi rounded(vf x)
{
    const vu bits = (vu)x, up = bits + 0x7fff + (bits >> 16 & 1);
    const vi is_number = (vi)(bits & 0x7fffffff) <= 0x7f800000;
    return (vi)(((up & (vu)is_number) | ((bits | 0x400000) & ~(vu)is_number)) & 0xffff0000);
}

/* Keeps a product from becoming part of a multiply-add: a move has the bits of optimizers/sgd.c. */
INLINE vf unfused(vf x)
{
    __asm__("" : "+v"(x));
    return x;
}

INLINE void put(float *to, vf x, int64_t count)
{
    if (count >= HALF)
        *(vf *)to = x;
    else if (count > 0)
        memcpy(to, &x, (size_t)count * sizeof *to);
}

/* ---- weights as right operand ---------------------------------------------------------------- */

/* [block of columns][step][2 tiles]; zeros behind the last row and column. */
typedef struct packer {
    int64_t c, k;
} packer;

/* A tile is 16 pairs of channels, ... */
static void refresh(const keel_derived *d, const void *weight)
{
    const packer *s = d->plan;
    const float *w = weight;
    uint16_t *to = d->data;
    for (int64_t j = 0; j < s->k; j += SIDE)
        for (int64_t i = 0; i < s->c; i += SIDE)
            for (int h = 0; h < 2; h++)
                for (int r = 0; r < HALF; r++, to += TILE_REDUCED) {
                    const int64_t first = i + 2 * r, column = j + h * HALF;
                    const float *from = w + first * s->k + column;
                    const vi even = rounded(load_some(first < s->c ? from : NULL, s->k - column));
                    const vi odd =
                        rounded(load_some(first + 1 < s->c ? from + s->k : NULL, s->k - column));
                    *(vi *)to = pair(even, odd);
                }
}

/* ... or of outputs: two neighbours of a row, which the copy turns. */
static void refresh_turned(const keel_derived *d, const void *weight)
{
    const packer *s = d->plan;
    const float *w = weight;
    uint16_t *to = d->data;
    for (int64_t j = 0; j < s->c; j += SIDE)
        for (int64_t i = 0; i < s->k; i += SIDE)
            for (int h = 0; h < 2; h++, to += TILE_HALVES) {
                vi r[HALF];
                for (int64_t c = 0; c < HALF; c++) {
                    const int64_t channel = j + h * HALF + c;
                    const float *from = channel < s->c ? w + channel * s->k + i : NULL;
                    const vi low = rounded(load_some(from, s->k - i));
                    const vi high = rounded(load_some(from ? from + HALF : NULL, s->k - i - HALF));
                    vh *const halves = (vh *)&r[c];
                    halves[0] = __builtin_convertvector(low >> 16, vh);
                    halves[1] = __builtin_convertvector(high >> 16, vh);
                }
                transpose(r);
                memcpy(to, r, sizeof r);
            }
}

static keel_status derive(keel_prepare *p, const keel_derived **got)
{
    const int64_t *w = p->node->weight[0].shape.dim;
    const bool turned = p->pass == KEEL_BACKWARD;
    packer *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (packer){ w[0], w[1] };
    keel_derived want = { .bytes = (size_t)(blocks(w[0]) * blocks(w[1])) * STEP_HALVES *
                                   sizeof(uint16_t),
                          .weight = 0,
                          .key = 0x54494c4544454e00 + (uint64_t)turned,
                          .refresh = turned ? refresh_turned : refresh,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &want, got);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What becomes of sums: rounded values, float32, or weights that move. */
typedef enum ending { VALUES, GRADIENT, MOVE } ending;

/* Where the sums of a block go. */
typedef struct place {
    int64_t rows, columns; /* what is wanted of the block */
    int64_t apart;         /* elements between rows of what is below */
    keel_bf16 *values;
    const float *start; /* [columns] added to each row; NULL: 0 */
    float *gradient;
    bool adds; /* VALUES, GRADIENT: to what is there */
    keel_tile_move move;
} place;

/* A block whose products are done. */
typedef struct finished {
    float sum[SIDE][SIDE] __attribute__((aligned(64)));
    int64_t row; /* the next to be written */
    place to;
} finished;

INLINE void write_row(const float *sums, int64_t row, const place *to, const ending end)
{
    for (int64_t k = 0; k < to->columns; k += HALF) {
        const int64_t count = to->columns - k, at = row * to->apart + k;
        vf sum = *(const vf *)(sums + k);
        if (end == VALUES) {
            keel_bf16 *const y = to->values + at;
            if (to->start) sum += load_some(to->start + k, count);
            if (to->adds) sum += (vf)(load_halves(y, count) << 16);
            const vh halves = __builtin_convertvector(rounded(sum) >> 16, vh);
            if (count >= HALF)
                *(vh *)y = halves;
            else
                memcpy(y, &halves, (size_t)count * sizeof *y);
        } else if (end == GRADIENT) {
            float *const dw = to->gradient + at;
            if (to->adds) sum += load_some(dw, count);
            put(dw, sum, count);
        } else {
            float *const w = to->move.w + at, *const m = to->move.m + at;
            const vf was = load_some(w, count);
            const vf kept = unfused(load_some(m, count) * to->move.keep);
            const vf by = kept - unfused(unfused(sum * to->move.scale) * to->move.rate);
            put(m, by, count);
            put(w, was + by, count);
        }
    }
}

INLINE void write_some(finished *f, int64_t rows, const ending end)
{
    for (const int64_t last = at_most(f->to.rows, f->row + rows); f->row < last; f->row++)
        write_row(f->sum[f->row], f->row, &f->to, end);
}

/* 32 rows as left operand; the last step reads `tail` [32][32], if that is not NULL. */
typedef struct left {
    const keel_bf16 *at, *tail;
    int64_t apart, rows;
} left;

/* The products of a block, whose sums go to `to`; `before` is finished meanwhile. low, wide: there
 * is a second row, a second column of tiles. */
INLINE void block(const left *a, const uint16_t *b, int64_t steps, finished *to, finished *before,
                  const ending end, const bool low, const bool wide)
{
    const int64_t share = keel_div_up(before->to.rows - before->row, steps);
    tile_zero(0);
    if (wide) tile_zero(1);
    if (low) tile_zero(2);
    if (low && wide) tile_zero(3);
    for (int64_t s = 0; s < steps; s++, b += STEP_HALVES) {
        const bool last = a->tail && s == steps - 1;
        const keel_bf16 *x = last ? a->tail : a->at + s * SIDE;
        const int64_t row = last ? SIDE : a->apart, stride = row * (int64_t)sizeof *x;
        tile_load(4, x, stride);
        if (low) tile_load(5, x + HALF * row, stride);
        tile_load(6, b, TILE_BYTES);
        if (wide) tile_load(7, b + TILE_HALVES, TILE_BYTES);
        tile_multiply(0, 4, 6);
        if (wide) tile_multiply(1, 4, 7);
        if (low) tile_multiply(2, 5, 6);
        if (low && wide) tile_multiply(3, 5, 7);
        write_some(before, share, end);
    }
    const int64_t stride = sizeof to->sum[0];
    tile_store(0, to->sum[0], stride);
    if (wide) tile_store(1, to->sum[0] + HALF, stride);
    if (low) tile_store(2, to->sum[HALF], stride);
    if (low && wide) tile_store(3, to->sum[HALF] + HALF, stride);
}

/* Two blocks in turn: one is multiplied, the other finished. */
typedef struct line {
    finished f[2];
    int next;
} line;

INLINE void line_begin(line *l)
{
    l->next = 0;
    l->f[1].row = l->f[1].to.rows = 0;
    tiles_begin();
}

INLINE void line_block(line *l, const left *a, const uint16_t *b, int64_t steps, const place *where,
                       const ending end)
{
    finished *const to = &l->f[l->next], *const before = &l->f[!l->next];
    const bool low = where->rows > HALF, wide = where->columns > HALF;
    if (low && wide)
        block(a, b, steps, to, before, end, true, true);
    else if (low)
        block(a, b, steps, to, before, end, true, false);
    else if (wide)
        block(a, b, steps, to, before, end, false, true);
    else
        block(a, b, steps, to, before, end, false, false);
    to->row = 0;
    to->to = *where;
    l->next = !l->next;
}

INLINE void line_end(line *l, const ending end)
{
    write_some(&l->f[!l->next], SIDE, end);
    tiles_end();
}

/* ---- forward and backward -------------------------------------------------------------------- */

/* Scratch: tails of PLACES rows, and a block of whole rows. */
static int64_t product_scratch(int64_t inner)
{
    return (PLACES + SIDE * blocks(inner)) * SIDE * (int64_t)sizeof(keel_bf16);
}

static void fill_up(keel_bf16 *to, int64_t row, const keel_bf16 *from, int64_t apart, int64_t n,
                    int64_t count)
{
    for (int64_t i = 0; i < n; i++, to += row) {
        memcpy(to, from + i * apart, (size_t)count * sizeof *to);
        memset(to + count, 0, (size_t)(row - count) * sizeof *to);
    }
}

/* Up to 32 rows x [rows, inner]. Tiles have 16 rows: with others, all are copied. */
static left left_of(const keel_bf16 *x, int64_t rows, int64_t inner, keel_bf16 *tail,
                    keel_bf16 *whole)
{
    const int64_t full = inner / SIDE * SIDE, row = blocks(inner) * SIDE;
    const int64_t fill = keel_round_up(rows, HALF) - rows;
    if (fill > 0) {
        fill_up(whole, row, x, inner, rows, inner);
        memset(whole + rows * row, 0, (size_t)(fill * row) * sizeof *whole);
        return (left){ .at = whole, .apart = row, .rows = rows };
    }
    if (full < inner) fill_up(tail, SIDE, x + full, inner, rows, inner - full);
    return (left){ .at = x, .tail = full < inner ? tail : NULL, .apart = inner, .rows = rows };
}

/* y [n, columns] = x [n, inner] times the copy, + start. */
static void product(const keel_call *c, const keel_bf16 *x, int64_t inner, keel_bf16 *y,
                    int64_t columns, const float *start, bool adds)
{
    const keel_derived *copy = c->plan;
    const int64_t steps = blocks(inner);
    keel_bf16 *const tails = c->scratch, *const whole = tails + PLACES * SIDE;
    line l;
    line_begin(&l);
    for (int64_t q = 0; q < c->rows; q += PLACES) {
        left a[PLACES / SIDE];
        const int64_t places = at_most(c->rows - q, PLACES), n = blocks(places);
        for (int64_t i = 0; i < n; i++)
            a[i] = left_of(x + (q + i * SIDE) * inner, at_most(places - i * SIDE, SIDE), inner,
                           tails + i * SIDE * SIDE, whole);
        const uint16_t *b = copy->data;
        for (int64_t k = 0; k < columns; k += SIDE, b += steps * STEP_HALVES)
            for (int64_t i = 0; i < n; i++) {
                const place where = { .rows = a[i].rows,
                                      .columns = at_most(columns - k, SIDE),
                                      .apart = columns,
                                      .values = y + (q + i * SIDE) * columns + k,
                                      .start = start ? start + k : NULL,
                                      .adds = adds };
                line_block(&l, &a[i], b, steps, &where, VALUES);
            }
    }
    line_end(&l, VALUES);
}

static void forward(const keel_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    product(c, c->in[0], w[0], c->out[0], w[1], c->node->n_weight > 1 ? c->weight[1] : NULL, false);
}

static void backward(const keel_call *c)
{
    const int64_t *w = c->node->weight[0].shape.dim;
    if (c->in_grad[0]) product(c, c->out_grad[0], w[1], c->in_grad[0], w[0], NULL, c->in_adds[0]);
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* Rows whose packed dy fits: no number depends on more than K, so that no bit does. */
static int64_t chunk_of(int64_t n_k)
{
    const int64_t fit = KEPT_MOST / (blocks(n_k) * STEP_HALVES * (int64_t)sizeof(uint16_t)) * SIDE;
    return fit < SIDE ? SIDE : at_most(fit, CHUNK);
}

static int64_t kept_halves(int64_t rows, int64_t n_k)
{
    return blocks(n_k) * blocks(rows) * STEP_HALVES;
}

typedef struct cursor { /* places one after the other, through all spans */
    const keel_span *span, *end;
    int64_t at;
} cursor;

/* The next places, at most `limit`; returns how many. */
static int64_t next_places(cursor *u, int64_t n_c, int64_t n_k, int64_t limit, const keel_bf16 **x,
                           const keel_bf16 **dy)
{
    int64_t n = 0;
    while (n < limit && u->span < u->end) {
        if (u->at == u->span->rows) {
            u->span++;
            u->at = 0;
            continue;
        }
        x[n] = (const keel_bf16 *)u->span->in + u->at * n_c;
        dy[n++] = (const keel_bf16 *)u->span->out_grad + u->at++ * n_k;
    }
    return n;
}

/* 16 numbers of place q and of the next as 16 words. */
INLINE vi joined(const keel_bf16 *const *from, int64_t q, int64_t n, int64_t at, int64_t count)
{
    const vi first = load_halves(q < n ? from[q] + at : NULL, count);
    return first | load_halves(q + 1 < n ? from[q + 1] + at : NULL, count) << 16;
}

/* dy as right operand: pairs of places. */
static void pack_dy(uint16_t *to, const keel_bf16 *const *dy, int64_t n, int64_t n_k)
{
    for (int64_t j = 0; j < n_k; j += SIDE)
        for (int64_t q = 0; q < n; q += SIDE)
            for (int64_t k = j; k < j + SIDE; k += HALF)
                for (int64_t r = 0; r < SIDE; r += 2, to += TILE_REDUCED)
                    *(vi *)to = joined(dy, q + r, n, k, n_k - k);
}

/* Channels [first, first + 32) of x as left operand [32][places, a multiple of 32]. */
static void turn_x(keel_bf16 *to, const keel_bf16 *const *x, int64_t n, int64_t n_c, int64_t first)
{
    const int64_t row = blocks(n) * SIDE;
    for (int h = 0; h < 2; h++)
        for (int64_t q = 0; q < n; q += SIDE) {
            vi r[HALF];
            const int64_t channel = first + h * HALF;
            for (int64_t m = 0; m < HALF; m++)
                r[m] = joined(x, q + 2 * m, n, channel, n_c - channel);
            transpose(r);
            for (int64_t c = 0; c < HALF; c++) *(vi *)(to + (h * HALF + c) * row + q) = r[c];
        }
}

/* The tile's sums of one chunk of places, whose dy is packed. */
INLINE void add_chunk(const keel_tile_call *c, const keel_bf16 *const *x, int64_t n,
                      const uint16_t *kept, keel_bf16 *turned, bool adds, const ending end)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    const int64_t first = c->first / n_k, count = c->count / n_k, steps = blocks(n);
    line l;
    line_begin(&l);
    for (int64_t i = 0; i < count; i += SIDE) {
        const left a = { .at = turned, .apart = steps * SIDE };
        turn_x(turned, x, n, n_c, first + i);
        for (int64_t k = 0; k < n_k; k += SIDE) {
            place where = { .rows = at_most(count - i, SIDE),
                            .columns = at_most(n_k - k, SIDE),
                            .apart = n_k,
                            .gradient = (float *)c->grad + i * n_k + k,
                            .adds = adds };
            if (end == MOVE) {
                where.move = *c->move;
                where.move.w += i * n_k + k;
                where.move.m += i * n_k + k;
            }
            line_block(&l, &a, kept + k / SIDE * steps * STEP_HALVES, steps, &where, end);
        }
    }
    line_end(&l, end);
}

static void kernel_tile(const keel_tile_call *c)
{
    const keel_bf16 *x[CHUNK], *dy[CHUNK];
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    const int64_t chunk = chunk_of(n_k);
    int64_t rows = 0;
    for (int i = 0; i < c->n_span; i++) rows += c->span[i].rows;
    uint16_t *const kept = c->scratch;
    keel_bf16 *const turned = kept + kept_halves(at_most(rows, chunk), n_k);
    cursor u = { c->span, c->span + c->n_span, 0 };
    bool adds = false;
    for (int64_t n; (n = next_places(&u, n_c, n_k, chunk, x, dy)) > 0; adds = true) {
        if (rows > chunk || !c->scratch_ready) pack_dy(kept, dy, n, n_k);
        if (c->move && rows <= chunk)
            add_chunk(c, x, n, kept, turned, false, MOVE);
        else
            add_chunk(c, x, n, kept, turned, adds, GRADIENT);
    }
    if (c->move && rows <= chunk) c->move->moved = true;
}

/* The gradient of the bias: dy summed over rows, in stretches, so that a long sum does not lose the
 * small to the large. */
static void bias_tile(const keel_tile_call *c)
{
    enum { STRETCH = 128 };
    const int64_t n_k = c->node->weight[0].shape.dim[1];
    for (int64_t k = 0; k < c->count; k += HALF) {
        vf all = { 0 }, sum = { 0 };
        int64_t n = 0;
        for (int s = 0; s < c->n_span; s++) {
            const keel_bf16 *dy = (const keel_bf16 *)c->span[s].out_grad + c->first + k;
            for (int64_t i = 0; i < c->span[s].rows; i++, dy += n_k) {
                sum += (vf)(load_halves(dy, c->count - k) << 16);
                if (++n % STRETCH) continue;
                all += sum;
                sum = (vf){ 0 };
            }
        }
        put((float *)c->grad + k, all + sum, c->count - k);
    }
}

static void weights_tile(const keel_tile_call *c)
{
    if (c->weight != 0)
        bias_tile(c);
    else
        kernel_tile(c);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    const int64_t *w = n->weight[0].shape.dim;
    const keel_derived *got;
    if (n->real != KEEL_FLOAT32 || n->held != KEEL_BFLOAT16 || n->in[0].dtype != KEEL_BFLOAT16 ||
        n->in[0].shape.rank != 1 || p->rows < 1 || p->pass > KEEL_WEIGHTS)
        return KEEL_EUNSUP; /* rows of many places are left to oneDNN */
    if (p->pass == KEEL_WEIGHTS) {
        const int64_t rows = at_most(p->rows, chunk_of(w[1]));
        p->scratch =
            (kept_halves(rows, w[1]) + SIDE * SIDE * blocks(rows)) * (int64_t)sizeof(uint16_t);
        return KEEL_OK;
    }
    p->scratch = product_scratch(w[p->pass == KEEL_BACKWARD]);
    KEEL_TRY(derive(p, &got));
    p->plan = (void *)got;
    return KEEL_OK;
}

const keel_kernel keel_kernel_dense_amx = {
    .op = &keel_op_dense,
    .name = "amx",
    .needs = NEEDS,
    .priority = KEEL_PRIORITY_OWN_TILES,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
    .narrow_tile = weights_tile,
    .tile_rows = SIDE,
};
