/* conv2d of float32 with 3x3 windows, stride 1, by Winograd's F(4x4, 3x3) (conv2d_winograd.c has
 * the formulas) whose products are made of bfloat16 pieces on the tiles of AMX (_split_amx.c): 36
 * products for each 4x4 tile of outputs instead of 144, each of them six of pieces. It is so for
 * KEEL_FLOAT32_FAST, too: transforms enlarge what two pieces leave out by up to 9, beyond what that
 * promises, and six products of a quarter are half of the direct three.
 *
 * Forward and backward take a block of tiles at a time and a line of six points after the other:
 * pixels are transformed to the line's points and split, multiplied, and transformed back along the
 * line while all that is in the cache. What is left of a tile, four numbers for each line and
 * filter, waits for the other lines. Points of the pixels lie as [point][block of channels][piece]
 * [tile][32 channels], those of the kernel as [point][block of filters][block of channels][piece]
 * [2 tiles], as _split_tiles.h takes them.
 *
 * A weight gradient goes by pairs of a block of channels and one of filters (_winograd_weights.h).
 * Its sums run over tiles, which neighbour each other in a word: [point][piece][channel][tile] on
 * the left, [point][block of filters][32 tiles][piece][2 tiles] on the right.
 *
 * Transforms change magnitudes by less than CHANGE, and numbers that pieces would lose are left to
 * the reference. An element's sum runs over channels alone, in an order that depends on nothing
 * else; a weight gradient is a sum of blocks of tiles, in order from the first row of the call.
 *
 * The file is long since the passes share transforms and splitting, which must be inlined with
 * constants. */
#define TILE 4
#include "base/memory.h"
#include "base/round.h"
#include "ops/x86/_split.h"
#include "ops/x86/_split_tiles.h"
#include "ops/x86/_transpose.h"
#include "ops/x86/_winograd_pixels.h"
#include "ops/x86/_winograd_weights.h"

KEEL_USES_OP(conv2d);

enum { BLOCK = SPLIT_SIDE, TILES_MOST = 128 /* of a block: the kernel is read once for each */ };
enum { WAITING = SIDE * TILE /* numbers of a tile and filter, until all lines are done */ };
enum { RUN = SPLIT_REDUCTION / TILE_REDUCED /* steps of one run of accumulators */ };
enum { PIECES = 3, STEP = 2 * PIECES * TILE_HALVES /* halves of the right operand */ };
enum { ROOM = SIDE * PIECES / 2 /* float32 points in which the pieces of SIDE points find room */ };
static const double CHANGE = 0x1p8;

typedef struct plan {
    const keel_derived *packed; /* NULL: weights */
    int64_t tiles;              /* of a block, a multiple of 32 */
} plan;

static int64_t blocks_of(int64_t n)
{
    return keel_div_up(n, BLOCK);
}

/* Pieces ----------------------------------------------------------------------------------------
 */

/* The pieces of 32 neighbours, one after the other, `apart` halves from piece to piece. */
INLINE void store_row(vf low, vf high, uint16_t *to, int64_t apart)
{
    const __m512i odd =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    words16 a[PIECES], b[PIECES];
    split_pieces((floats16)low, a, PIECES);
    split_pieces((floats16)high, b, PIECES);
    EACH(p, PIECES)
        _mm512_storeu_si512(to + p * apart,
                            _mm512_permutex2var_epi16((__m512i)a[p], odd, (__m512i)b[p]));
}

/* The pieces of two neighbours along the reduction, for 16 columns: a word each. */
INLINE void pair_pieces(vf first, vf second, __m512i word[])
{
    words16 a[PIECES], b[PIECES];
    split_pieces((floats16)first, a, PIECES);
    split_pieces((floats16)second, b, PIECES);
    EACH(p, PIECES) word[p] = _mm512_or_si512(_mm512_srli_epi32((__m512i)a[p], 16), (__m512i)b[p]);
}

static inline vm some(int64_t n)
{
    return n > 0 ? vm_first(n) : 0;
}

/* The kernel ------------------------------------------------------------------------------------
 */

typedef struct packer {
    int64_t c, k; /* Keras's kernel is [3, 3, c, k] */
    bool turned;  /* for backward: rotated by 180 degrees, filters and channels exchanged */
} packer;

/* The taps of 32 lines of the reduction from `line` on and of 16 columns from `column` on. */
static void gather_taps(const packer *s, const float *w, int64_t line, int64_t column,
                        float to[9][BLOCK][LANES])
{
    const int64_t lines = at_most((s->turned ? s->k : s->c) - line, BLOCK);
    const int64_t columns = at_most((s->turned ? s->c : s->k) - column, LANES);
    memset(to, 0, 9 * BLOCK * LANES * sizeof(float));
    if (columns <= 0) return;
    for (int tap = 0; tap < 9; tap++) {
        const float *from = w + (s->turned ? 8 - tap : tap) * s->c * s->k;
        for (int64_t l = 0; !s->turned && l < lines; l++)
            memcpy(to[tap][l], from + (line + l) * s->k + column, (size_t)columns * sizeof(float));
        for (int64_t c = 0; s->turned && c < columns; c++)
            for (int64_t l = 0; l < lines; l++)
                to[tap][l][c] = from[(column + c) * s->k + line + l];
    }
}

/* G g Gt of 16 columns. */
INLINE void kernel_at(float taps[9][BLOCK][LANES], int64_t line, vf u[SIDE][SIDE])
{
    vf t[SIDE][3];
    EACH(j, 3) {
        const vf g[3] = { vf_load(taps[j][line]), vf_load(taps[3 + j][line]),
                          vf_load(taps[6 + j][line]) };
        vf column[SIDE];
        kernel_points(g, column);
        EACH(i, SIDE) t[i][j] = column[i];
    }
    EACH(i, SIDE) kernel_points(t[i], u[i]);
}

INLINE void pack(const packer *s, const float *w, uint16_t *to)
{
    const int64_t lines = s->turned ? s->k : s->c, columns = s->turned ? s->c : s->k;
    const int64_t steps = blocks_of(lines), point = blocks_of(columns) * steps * STEP;
    float taps[9][BLOCK][LANES];
    for (int64_t column = 0; column < columns; column += BLOCK)
        for (int64_t b = 0; b < steps; b++, to += STEP)
            for (int h = 0; h < 2; h++) {
                gather_taps(s, w, b * BLOCK, column + h * LANES, taps);
                for (int r = 0; r < TILE_ROWS; r++) {
                    uint16_t *row = to + h * TILE_HALVES + r * TILE_REDUCED;
                    vf first[SIDE][SIDE], second[SIDE][SIDE];
                    kernel_at(taps, 2 * r, first);
                    kernel_at(taps, 2 * r + 1, second);
                    EACH(i, SIDE)
                        EACH(j, SIDE) {
                            __m512i word[PIECES];
                            pair_pieces(first[i][j], second[i][j], word);
                            EACH(p, PIECES)
                                _mm512_stream_si512(
                                    (__m512i *)(row + (SIDE * i + j) * point + 2 * p * TILE_HALVES),
                                    word[p]);
                        }
                }
            }
}

/* Behind a line that begins with the bits of the kernel's largest magnitude. */
static void refresh(const keel_derived *d, const void *weight)
{
    const packer *s = d->plan;
    uint16_t *const to = (uint16_t *)((char *)d->data + TILE_BYTES);
    pack(s, weight, to);
    *(int32_t *)d->data = keel_split_largest(weight, 9 * s->c * s->k);
    _mm_sfence(); /* other workers read it after their next meeting */
}

/* Transforms ------------------------------------------------------------------------------------
 */

/* Line `line` of Bt d B. */
INLINE void input_line(const float *const at[POINTS], int64_t c, vm m, vf v[SIDE], const int line)
{
    vf t[SIDE];
    EACH(j, SIDE) {
        vf d[SIDE], all[SIDE];
        EACH(i, SIDE) d[i] = vf_load_some(m, at[SIDE * i + j] + c);
        input_points(d, all);
        t[j] = all[line];
    }
    input_points(t, v);
}

INLINE void input_tiles(const problem *p, const float *in, cursor c, int64_t n, const float *zeros,
                        uint16_t *to, int64_t tiles, const int line)
{
    const int64_t blocks = blocks_of(p->in.c), piece = tiles * BLOCK, block = PIECES * piece;
    for (int64_t t = 0; t < n; t++, to += BLOCK, cursor_next(p, &c)) {
        const float *at[POINTS];
        pixels_of(p, in, &c, zeros, at);
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t first = b * BLOCK, left = p->in.c - first;
            vf low[SIDE], high[SIDE];
            input_line(at, first, some(left), low, line);
            input_line(at, first + LANES, some(left - LANES), high, line);
            EACH(j, SIDE) store_row(low[j], high[j], to + (j * blocks + b) * block, piece);
        }
    }
}

/* Line `line` of what waits, [tile][line][4][32 filters], from the sums of its points. */
static void output_line(float sum[SIDE][BLOCK][BLOCK], int64_t n, float *to, int line)
{
    to += line * TILE * BLOCK;
    for (int64_t t = 0; t < n; t++, to += WAITING * BLOCK)
        for (int h = 0; h < BLOCK; h += LANES) {
            vf u[SIDE], y[TILE];
            EACH(j, SIDE) u[j] = vf_load(&sum[j][t][h]);
            output_points(u, y);
            EACH(j, TILE) vf_store(to + j * BLOCK + h, y[j]);
        }
}

/* The outputs of tiles and a block of filters, plus the bias, or what is there already. */
static void output_tiles(const problem *p, const float *from, cursor c, int64_t n, int64_t first,
                         const float *bias, float *out, bool adds)
{
    for (int64_t t = 0; t < n; t++, from += WAITING * BLOCK, cursor_next(p, &c)) {
        bool there[TILE * TILE];
        int64_t at[TILE * TILE];
        outputs_of(p, &c, TILE, there, at);
        for (int h = 0; h < BLOCK; h += LANES) {
            const vm m = some(p->out.c - first - h);
            const vf b = bias ? vf_load_some(m, bias + first + h) : vf_zero();
            EACH(j, TILE) {
                vf u[SIDE], y[TILE];
                EACH(i, SIDE) u[i] = vf_load(from + (TILE * i + j) * BLOCK + h);
                output_points(u, y);
                EACH(i, TILE) {
                    float *to = out + at[TILE * i + j] + first + h;
                    if (there[TILE * i + j])
                        vf_store_some(m, to, vf_add(y[i], adds ? vf_load_some(m, to) : b));
                }
            }
        }
    }
}

/* Forward and backward --------------------------------------------------------------------------
 */

/* 32 tiles times 32 filters at a point. */
INLINE void product(const uint16_t *left, int64_t tiles, const uint16_t *right, int64_t blocks,
                    float sum[BLOCK][BLOCK])
{
    for (int64_t done = 0; done < blocks; done += RUN) {
        const int64_t end = at_most(blocks, done + RUN);
        split_zero();
        EACH(part, PIECES - 1)
            for (int64_t b = done; b < end; b++)
                split_step((split_left){ .at = left + b * PIECES * tiles * BLOCK,
                                         .piece = tiles * BLOCK,
                                         .second = TILE_ROWS * BLOCK,
                                         .stride = TILE_BYTES },
                           right + b * STEP, PIECES, part);
        split_end_run(sum, done > 0);
    }
}

typedef struct work { /* of a block of tiles */
    const keel_call *call;
    const problem *p;
    const float *in, *zeros;
    cursor at;
    int64_t n, tiles; /* that there are, that the buffers have room for */
    uint16_t *v;
    float *waiting; /* [block of filters][tile][line][4][32] */
} work;

INLINE void one_line(const work *w, const int line)
{
    const problem *p = w->p;
    const plan *pl = w->call->plan;
    const int64_t blocks = blocks_of(p->in.c), point = blocks * PIECES * w->tiles * BLOCK;
    const int64_t columns = blocks_of(p->out.c), strip = blocks * STEP;
    const uint16_t *u = (const uint16_t *)((const char *)pl->packed->data + TILE_BYTES) +
                        line * SIDE * columns * strip;
    float sum[SIDE][BLOCK][BLOCK] __attribute__((aligned(64)));
    input_tiles(p, w->in, w->at, w->n, w->zeros, w->v, w->tiles, line);
    for (int64_t k = 0; k < columns; k++, u += strip)
        for (int64_t t = 0; t < w->n; t += BLOCK) {
            for (int j = 0; j < SIDE; j++)
                product(w->v + j * point + t * BLOCK, w->tiles, u + j * columns * strip, blocks,
                        sum[j]);
            output_line(sum, at_most(w->n - t, BLOCK),
                        w->waiting + (k * w->tiles + t) * WAITING * BLOCK, line);
        }
}

INLINE void all_lines(const work *w)
{
    one_line(w, 0);
    one_line(w, 1);
    one_line(w, 2);
    one_line(w, 3);
    one_line(w, 4);
    one_line(w, 5);
}

static int64_t zeros_floats(int64_t c)
{
    return blocks_of(c) * BLOCK;
}

static int64_t product_scratch(const problem *p, const plan *pl)
{
    const int64_t v = SIDE * blocks_of(p->in.c) * PIECES * pl->tiles * BLOCK;
    const int64_t waiting = blocks_of(p->out.c) * pl->tiles * WAITING * BLOCK;
    return 4 * (zeros_floats(p->in.c) + waiting) + 2 * v;
}

/* false: pieces would lose digits, and nothing is written. */
static bool convolve(const keel_call *c, const problem *p, const float *in, const float *bias,
                     float *out, bool adds)
{
    const plan *pl = c->plan;
    const int64_t tiles = p->down * p->across * c->rows, waiting = pl->tiles * WAITING * BLOCK;
    float *const zeros = c->scratch;
    work w = { .call = c, .p = p, .in = in, .zeros = zeros, .tiles = pl->tiles };
    if (!keel_split_keeps(keel_split_largest(in, c->rows * pixels(&p->in)),
                          *(const int32_t *)pl->packed->data, CHANGE))
        return false;
    memset(zeros, 0, (size_t)zeros_floats(p->in.c) * sizeof *zeros);
    w.waiting = zeros + zeros_floats(p->in.c);
    w.v = (uint16_t *)(w.waiting + blocks_of(p->out.c) * waiting);
    tiles_begin();
    for (int64_t t = 0; t < tiles; t += pl->tiles) {
        w.at = cursor_at(p, t);
        w.n = at_most(tiles - t, pl->tiles);
        all_lines(&w);
        for (int64_t k = 0; k < p->out.c; k += BLOCK)
            output_tiles(p, w.waiting + k / BLOCK * waiting, w.at, w.n, k, bias, out, adds);
    }
    tiles_end();
    return true;
}

static void forward(const keel_call *c)
{
    const problem p = problem_of(c->node, false, TILE);
    const float *bias = c->node->n_weight > 1 ? c->weight[1] : NULL;
    if (!convolve(c, &p, c->in[0], bias, c->out[0], false)) c->node->op->forward[0](c);
}

static void backward(const keel_call *c)
{
    const problem p = problem_of(c->node, true, TILE);
    if (c->in_grad[0] && !convolve(c, &p, c->out_grad[0], NULL, c->in_grad[0], c->in_adds[0]))
        c->node->op->backward[0](c);
}

/* Weights ---------------------------------------------------------------------------------------
 */

/* Line `line` of A dy At. */
INLINE void gradient_line(const float *const at[TILE * TILE], int64_t k, vm m, vf w[SIDE],
                          const int line)
{
    vf t[TILE];
    EACH(j, TILE) {
        vf y[TILE], all[SIDE];
        EACH(i, TILE) y[i] = vf_load_some(m, at[TILE * i + j] + k);
        gradient_points(y, all);
        t[j] = all[line];
    }
    gradient_points(t, w);
}

/* The pixels of two neighbouring tiles, and the outputs of them. A tile behind the last is zeros.
 */
typedef struct neighbours {
    const float *pixel[2][POINTS], *output[2][TILE * TILE];
} neighbours;

static void neighbours_of(const weights_block *b, const problem *p, cursor *c, int64_t there,
                          neighbours *to)
{
    for (int i = 0; i < 2; i++) {
        bool inside[TILE * TILE];
        int64_t at[TILE * TILE];
        EACH(x, POINTS) to->pixel[i][x] = b->zeros;
        EACH(x, TILE * TILE) to->output[i][x] = b->zeros;
        if (i >= there) continue;
        pixels_of(p, b->call->in[0], c, b->zeros, to->pixel[i]);
        outputs_of(p, c, TILE, inside, at);
        for (int x = 0; x < TILE * TILE; x++)
            if (inside[x]) to->output[i][x] = (const float *)b->call->out_grad[0] + at[x];
        cursor_next(p, c);
    }
}

/* 32 tiles of a line of points, for 16 channels from `first` of the pair's on. */
INLINE void turn_inputs(const weights_block *b, const neighbours near[TILE_ROWS], int64_t first,
                        uint16_t *to, const int line)
{
    const int64_t channels = keel_round_up(b->nc, BLOCK), piece = channels * WEIGHTS_TILES;
    const vm m = some(b->nc - first);
    words16 r[SIDE][PIECES][TILE_ROWS];
    for (int n = 0; n < TILE_ROWS; n++) {
        vf v[2][SIDE];
        EACH(i, 2) input_line(near[n].pixel[i], b->c0 + first, m, v[i], line);
        EACH(j, SIDE) {
            __m512i word[PIECES];
            pair_pieces(v[0][j], v[1][j], word);
            EACH(p, PIECES) r[j][p][n] = (words16)word[p];
        }
    }
    for (int j = 0; j < SIDE; j++)
        for (int p = 0; p < PIECES; p++) {
            uint16_t *row = to + (j * PIECES + p) * piece + first * WEIGHTS_TILES;
            transpose(r[j][p]);
            for (int c = 0; c < LANES; c++) *(words16 *)(row + c * WEIGHTS_TILES) = r[j][p][c];
        }
}

/* 32 tiles of a line of points, for 16 filters from `first` of the pair's on. */
INLINE void pair_outputs(const weights_block *b, const neighbours near[TILE_ROWS], int64_t first,
                         uint16_t *to, int64_t point, const int line)
{
    const vm m = some(b->nk - first);
    for (int n = 0; n < TILE_ROWS; n++, to += TILE_REDUCED) {
        vf w[2][SIDE];
        EACH(i, 2) gradient_line(near[n].output[i], b->k0 + first, m, w[i], line);
        EACH(j, SIDE) {
            __m512i word[PIECES];
            pair_pieces(w[0][j], w[1][j], word);
            EACH(p, PIECES) _mm512_storeu_si512(to + j * point + 2 * p * TILE_HALVES, word[p]);
        }
    }
}

/* u [channel][32 filters] is, or grows by, the products of n tiles. */
INLINE void product_weights(const uint16_t *left, int64_t piece, const uint16_t *right, int64_t n,
                            int64_t channels, float *u, bool adds)
{
    float sum[BLOCK][BLOCK] __attribute__((aligned(64)));
    split_zero();
    EACH(part, PIECES - 1)
        for (int64_t t = 0; t < n; t += BLOCK)
            split_step((split_left){ .at = left + t,
                                     .piece = piece,
                                     .second = TILE_ROWS * WEIGHTS_TILES,
                                     .stride = 2 * WEIGHTS_TILES },
                       right + t / BLOCK * STEP, PIECES, part);
    split_store(sum);
    for (int64_t c = 0; c < channels; c++)
        for (int h = 0; h < BLOCK; h += LANES) {
            float *to = u + c * BLOCK + h;
            const vf x = vf_load(&sum[c][h]);
            vf_store(to, adds ? vf_add(vf_load(to), x) : x);
        }
}

INLINE void weights_line(const weights_block *b, const problem *p, cursor at, int64_t n, bool adds,
                         const int line)
{
    const int64_t channels = keel_round_up(b->nc, BLOCK), filters = keel_round_up(b->nk, BLOCK);
    const int64_t piece = channels * WEIGHTS_TILES, strip = WEIGHTS_TILES / BLOCK * STEP;
    const int64_t point = filters / BLOCK * strip, lines = keel_round_up(b->nc, LANES);
    uint16_t *const v = (uint16_t *)b->v.data, *const w = (uint16_t *)b->w.data;
    for (int64_t t = 0; t < n; t += BLOCK) {
        neighbours near[TILE_ROWS];
        for (int i = 0; i < TILE_ROWS; i++) neighbours_of(b, p, &at, n - t - 2 * i, &near[i]);
        for (int64_t c = 0; c < channels; c += LANES) turn_inputs(b, near, c, v + t, line);
        for (int64_t k = 0; k < filters; k += LANES)
            pair_outputs(b, near, k,
                         w + k / BLOCK * strip + t / BLOCK * STEP + k % BLOCK / LANES * TILE_HALVES,
                         point, line);
    }
    for (int j = 0; j < SIDE; j++)
        for (int64_t c = 0; c < channels; c += BLOCK)
            for (int64_t k = 0; k < filters; k += BLOCK)
                product_weights(
                    v + j * PIECES * piece + c * WEIGHTS_TILES, piece,
                    w + j * point + k / BLOCK * strip, n, at_most(lines - c, BLOCK),
                    b->u + (SIDE * line + j) * b->point + (k / PANEL * lines + c) * PANEL, adds);
}

INLINE void weights_pair(const weights_block *b, const problem *p)
{
    const int64_t tiles = p->down * p->across * b->call->rows;
    for (int64_t t = 0; t < tiles; t += WEIGHTS_TILES) {
        const cursor at = cursor_at(p, t);
        const int64_t n = at_most(tiles - t, WEIGHTS_TILES);
        weights_line(b, p, at, n, t > 0, 0);
        weights_line(b, p, at, n, t > 0, 1);
        weights_line(b, p, at, n, t > 0, 2);
        weights_line(b, p, at, n, t > 0, 3);
        weights_line(b, p, at, n, t > 0, 4);
        weights_line(b, p, at, n, t > 0, 5);
    }
}

static bool kernel_weights(const keel_call *c)
{
    const problem p = problem_of(c->node, false, TILE);
    weights_block b = { .call = c, .kernel = { .c = p.in.c, .k = p.out.c } };
    if (!keel_split_keeps(keel_split_largest(c->in[0], c->rows * pixels(&p.in)),
                          keel_split_largest(c->out_grad[0], c->rows * pixels(&p.out)), CHANGE))
        return false;
    weights_open(&b, ROOM, ROOM);
    b.bias = b.bias_of_call = NULL; /* it is summed apart */
    tiles_begin();
    do {
        weights_pair(&b, &p);
        weights_store(&b);
    } while (weights_next(&b));
    tiles_end();
    return true;
}

static void weights(const keel_call *c)
{
    const int64_t *y = c->node->out[0].shape.dim;
    if (c->weight_grad[0] && !kernel_weights(c)) {
        c->node->op->weights[0](c);
        return;
    }
    if (c->node->n_weight > 1 && c->weight_grad[1])
        keel_split_bias(c->weight_grad[1], c->out_grad[0], c->rows * y[0] * y[1], y[2],
                        c->weight_adds);
}

/* Prepare ---------------------------------------------------------------------------------------
 */

static keel_status derive(keel_prepare *p, const problem *o, const keel_derived **got)
{
    packer *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (packer){ .c = p->node->in[0].shape.dim[2],
                   .k = p->node->out[0].shape.dim[2],
                   .turned = p->pass == KEEL_BACKWARD };
    const int64_t steps = blocks_of(o->in.c) * blocks_of(o->out.c);
    keel_derived want = { .bytes = (size_t)(TILE_BYTES + 2 * POINTS * steps * STEP),
                          .key = 0x57494e4f53504c00 + s->turned,
                          .refresh = refresh,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &want, got);
}

/* Tiles are full enough: those of pixels and those of the processor. */
static bool pays(const problem *o)
{
    const int64_t c = keel_round_up(o->in.c, BLOCK), k = keel_round_up(o->out.c, BLOCK);
    const double products = (double)(POINTS * o->down * o->across) * (double)(c * k);
    return o->in.c >= LANES &&
           products <= 0.65 * 9 * (double)(o->out.h * o->out.w) * (double)(o->in.c * o->out.c);
}

static keel_status prepare(keel_prepare *p)
{
    int ignored; /* PIECES */
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || !p->measured || !has_tiles(p->node) ||
        !keel_split_allowed(p, &ignored))
        return KEEL_EUNSUP;
    const problem o = problem_of(p->node, p->pass == KEEL_BACKWARD, TILE);
    if (!pays(&o)) return KEEL_EUNSUP;
    /* over fewer channels the error is up to four times a plain sum's for numbers of a wide range,
     */
    if (p->pass != KEEL_WEIGHTS && o.in.c < 64) return KEEL_EUNSUP;
    /* and over fewer places for all numbers */
    if (p->pass == KEEL_WEIGHTS && o.out.h * o.out.w < 196) return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    pl->tiles = keel_round_up(at_most(o.down * o.across * p->rows, TILES_MOST), BLOCK);
    if (p->pass == KEEL_WEIGHTS) {
        weights_block b = { .kernel = { .c = o.in.c, .k = o.out.c } };
        p->scratch = weights_layout(&b, NULL, ROOM, ROOM) * 4;
    } else {
        const keel_status s = derive(p, &o, &pl->packed);
        if (s < 0) {
            keel_free(pl);
            return s;
        }
        p->scratch = product_scratch(&o, pl);
    }
    p->plan = pl;
    return KEEL_OK;
}

const keel_kernel keel_kernel_conv2d_winograd_split_amx = {
    .op = &keel_op_conv2d,
    .name = "winograd_split_amx",
    .needs = TILES_NEED,
    .priority = KEEL_PRIORITY_SPLIT_WINOGRAD,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
