/* conv2d on bfloat16 values by the tiles of AMX, without groups: the blocks of _tile_blocks.h at
 * the places of _planes.h.
 *
 * Forward and backward. Windows of one pixel that lie side by side are a product of rows, which are
 * read where they are. Others copy their image, line by line in a border of zeros, into blocks of
 * 32 channels: [block][phase][place][32]. There 16 neighbouring places are a tile wherever a tap
 * begins, and of the tiles of a tap all but a line are those of the tap before, from the
 * first-level cache. Weights are a copy in the order in which they are multiplied.
 *
 * Weight gradients reduce over places. x is turned once for 32 channels and some thousand places,
 * [phase][32][place], where a tap is a shift, while the 32 before are multiplied; dy is joined in
 * pairs of places. Tiles start anew every 512 places and are added up in float32, else a long sum
 * would lose more than float32 does; how often dW goes through the cache depends on the places that
 * are packed at a time. A shift that is no multiple of 32 places has each row of a tile in two
 * lines of the cache. Measured in a sketch of this: from 256 outputs on it pays to copy what a tap
 * reads into whole tiles, which all blocks of outputs then share; with up to 128 it does not. */
#include "base/memory.h"
#include "ops/args.h"
#include "ops/x86/_planes.h"
#include "ops/x86/_tile_operands.h"

KEEL_USES_OP(conv2d);

enum {
    /* Bytes of packed places: with weights of at most WEIGHTS_FEW, which stay in the second-level
     * cache, so few that the places nearly stay in the first; else so many that the weights are
     * seldom read from the third. */
    WEIGHTS_FEW = 900 << 10,
    PACKED_FEW = 96 << 10,
    PACKED_MANY = 768 << 10,
    /* Of a weight gradient: places of a run of accumulators; outputs whose dy is packed at a time,
     * and its bytes; places for any number of outputs; outputs that share copied tiles. */
    RUN = 512,
    OUTPUTS = 1024,
    KEPT = 1 << 20,
    PLACES_MOST = 2048,
    COPIES_PAY = 256
};

typedef struct plan {
    planes at;
    int64_t rows; /* of an image, where places are rows that are read where they are; else 0 */
    int64_t c, k; /* channels that are read and written; of a weight gradient: of x and dy */
    const keel_derived *weights;
    /* Where in scratch: places as pointers, packed operands, and a gradient that is to be added. */
    int64_t read_at, written_at, left_at, right_at, copy_at, sum_at;
} plan;

/* ---- prepare --------------------------------------------------------------------------------- */

/* Room for n times `each` bytes. false: more than there can be. */
static bool take(int64_t *scratch, int64_t n, int64_t each, int64_t *at)
{
    int64_t bytes;
    *at = *scratch;
    if (!keel_mul_i64(n, each, &bytes) || bytes > INT64_MAX / 4 - *scratch) return false;
    *scratch = keel_round_up(*scratch + bytes, 64);
    return true;
}

/* A sequence [T, 1, C] is taken as a line [1, T, C], which lies in memory alike and is listed
 * faster than T lines. A long one is not: a line is packed at a time. */
static keel_window window_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    keel_window v = keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad);
    if (v.in[0] > RUN || v.in[1] != 1 || v.out[1] != 1 || v.size[1] != 1 || v.pad[1] != 0) return v;
    int64_t *const dims[] = { v.in, v.out, v.size, v.stride, v.dilation, v.pad };
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        dims[i][1] = dims[i][0];
        dims[i][0] = 1;
    }
    v.pad[0] = 0;
    return v;
}

static bool places_are_rows(const keel_window *v)
{
    for (int d = 0; d < 2; d++)
        if (v->size[d] != 1 || v->stride[d] != 1 || v->in[d] != v->out[d]) return false;
    return true;
}

/* Places of a packed left operand of n places, whose last block is whole. */
static int64_t left_places(const plan *pl, int64_t n)
{
    return keel_round_up(n, SIDE) + pl->at.reach;
}

/* From a line of turned places to the next: an odd number of cache lines, so that the rows of a
 * tile lie in different sets of the first-level cache. */
static int64_t turned_row(const plan *pl, int64_t n)
{
    return (blocks(left_places(pl, n)) | 1) * SIDE;
}

static int64_t outputs_at_once(const plan *pl)
{
    return at_most(blocks(pl->k) * SIDE, OUTPUTS);
}

static keel_status plan_product(plan *pl, keel_prepare *p, bool turned)
{
    packer copy = { .c = turned ? pl->k : pl->c,
                    .k = turned ? pl->c : pl->k,
                    .turned = turned,
                    .n_class = pl->at.written.n };
    int taps = 0;
    for (int g = 0; g < copy.n_class; g++)
        for (int t = copy.n_tap[g] = pl->at.n_tap[g]; t > 0; t--, taps++)
            copy.tap[taps] = pl->at.tap[taps].tap;
    KEEL_TRY(derive_weights(p, &copy, &pl->weights));
    if (pl->rows > 0) {
        p->scratch = product_scratch(pl->c);
        return KEEL_OK;
    }
    const int64_t each = pl->at.read.n * blocks(pl->c) * SIDE * (int64_t)sizeof(keel_bf16);
    const bool few = pl->weights->bytes <= WEIGHTS_FEW;
    planes_stretch(&pl->at, (few ? PACKED_FEW : PACKED_MANY) / each, p->rows);
    const int64_t n = pl->at.places;
    return take(&p->scratch, pl->at.read.n * (n + pl->at.reach), sizeof(void *), &pl->read_at) &&
                   take(&p->scratch, n, sizeof(void *), &pl->written_at) &&
                   take(&p->scratch, left_places(pl, n), each, &pl->left_at)
               ? KEEL_OK
               : KEEL_EUNSUP;
}

static keel_status plan_weights(plan *pl, keel_prepare *p)
{
    const int64_t outputs = outputs_at_once(pl), half = sizeof(keel_bf16);
    const int64_t fit = at_most(plane_larger(KEPT / (outputs * half), RUN), PLACES_MOST);
    planes_stretch(&pl->at, fit, p->rows);
    const int64_t n = pl->at.places, sums = keel_row_count(&p->node->weight[0]);
    return take(&p->scratch, pl->at.read.n * (n + pl->at.reach), sizeof(void *), &pl->read_at) &&
                   take(&p->scratch, n, sizeof(void *), &pl->written_at) &&
                   take(&p->scratch, keel_round_up(n, SIDE), outputs * half, &pl->right_at) &&
                   take(&p->scratch, turned_row(pl, n), 2 * pl->at.read.n * SIDE * half,
                        &pl->left_at) &&
                   take(&p->scratch, RUN * SIDE, half, &pl->copy_at) &&
                   take(&p->scratch, p->weight_adds ? sums : 0, sizeof(float), &pl->sum_at)
               ? KEEL_OK
               : KEEL_EUNSUP;
}

/* Where a tile has few channels in it, products are wasted: others are asked first. */
static bool wanted(const keel_prepare *p)
{
    const int64_t *w = p->node->weight[0].shape.dim;
    return p->measured || (w[2] >= HALF && w[3] >= HALF);
}

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    const keel_conv2d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    const bool turned = p->pass == KEEL_BACKWARD;
    if (n->real != KEEL_FLOAT32 || n->held != KEEL_BFLOAT16 || n->in[0].dtype != KEEL_BFLOAT16 ||
        p->rows < 1 || p->pass > KEEL_WEIGHTS || a->groups != 1 || !wanted(p))
        return KEEL_EUNSUP;
    const keel_window v = window_of(n);
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    pl->c = w[turned ? 3 : 2];
    pl->k = w[turned ? 2 : 3];
    if (places_are_rows(&v)) pl->rows = v.in[0] * v.in[1];
    p->scratch = 0;
    keel_status s = KEEL_EUNSUP;
    if (planes_of(&pl->at, &v, turned))
        s = p->pass == KEEL_WEIGHTS ? plan_weights(pl, p) : plan_product(pl, p, turned);
    if (s < 0)
        keel_free(pl);
    else
        p->plan = pl;
    return s;
}

/* ---- forward and backward -------------------------------------------------------------------- */

/* [block of channels][phase][place][32], of `n` places and zeros up to `row`. */
static void pack_left(const plan *pl, const keel_bf16 *const *from, int64_t n, int64_t row,
                      keel_bf16 *to)
{
    for (int64_t i = 0; i < pl->c; i += SIDE) {
        const size_t count = (size_t)at_most(pl->c - i, SIDE);
        for (int r = 0; r < pl->at.read.n; r++)
            for (int64_t q = 0; q < row; q++, to += SIDE) {
                const keel_bf16 *const x = q < n ? from[r * n + q] : NULL;
                if (x && count == SIDE) {
                    memcpy(to, x + i, SIDE * sizeof *to);
                } else {
                    memset(to, 0, SIDE * sizeof *to);
                    if (x) memcpy(to, x + i, count * sizeof *to);
                }
            }
    }
}

static void clear_places(keel_bf16 *const *to, int64_t n, int64_t count)
{
    for (int64_t q = 0; q < n; q++)
        if (to[q]) memset(to[q], 0, (size_t)count * sizeof **to);
}

/* All outputs of the n places at `to`, by a class's taps. */
static void multiply_class(const plan *pl, const plane_tap *tap, int n_tap, const uint16_t *weights,
                           const keel_bf16 *packed, keel_bf16 *const *to, int64_t n,
                           const float *start, bool adds)
{
    const int64_t row = left_places(pl, n), steps = blocks(pl->c) * n_tap;
    int64_t distance[PLANE_TAPS];
    line l;
    for (int t = 0; t < n_tap; t++) distance[t] = (tap[t].phase * row + tap[t].shift) * SIDE;
    line_begin(&l);
    for (int64_t k = 0; k < pl->k; k += SIDE, weights += steps * STEP_HALVES)
        for (int64_t q = 0; q < n; q += SIDE) {
            const left a = { .at = packed + q * SIDE,
                             .apart = SIDE,
                             .next = pl->at.read.n * row * SIDE,
                             .n_tap = n_tap,
                             .tap = distance };
            const place where = { .rows = at_most(n - q, SIDE),
                                  .columns = at_most(pl->k - k, SIDE),
                                  .list = to + q,
                                  .first = k,
                                  .start = start ? start + k : NULL,
                                  .adds = adds };
            line_block(&l, &a, weights, steps, &where, VALUES);
        }
    line_end(&l, VALUES);
}

static void convolve(const keel_call *c, const keel_bf16 *x, keel_bf16 *y, const float *start,
                     bool adds)
{
    const plan *pl = c->plan;
    const planes *at = &pl->at;
    const int64_t half = sizeof(keel_bf16);
    const void **const read = (const void **)((char *)c->scratch + pl->read_at);
    const void **const written = (const void **)((char *)c->scratch + pl->written_at);
    keel_bf16 *const packed = (keel_bf16 *)((char *)c->scratch + pl->left_at);
    stretch s = { 0 };
    while (next_stretch(at, &s, c->rows)) {
        const int64_t n = stretch_places(at, &s), all = n + at->reach;
        const plane_tap *tap = at->tap;
        const uint16_t *weights = pl->weights->data;
        for (int r = 0; r < at->read.n; r++)
            list_places(at, &at->read, r, &s, x, pl->c * half, all, read + r * all);
        pack_left(pl, (const keel_bf16 *const *)read, all, left_places(pl, n), packed);
        for (int g = 0; g < at->written.n; tap += at->n_tap[g++]) {
            list_places(at, &at->written, g, &s, y, pl->k * half, n, written);
            if (at->n_tap[g] > 0)
                multiply_class(pl, tap, at->n_tap[g], weights, packed, (keel_bf16 *const *)written,
                               n, start, adds);
            else if (!adds)
                clear_places((keel_bf16 *const *)written, n, pl->k);
            weights += at->n_tap[g] * blocks(pl->c) * blocks(pl->k) * STEP_HALVES;
        }
    }
}

static void run(const keel_call *c, const keel_bf16 *x, keel_bf16 *y, const float *start, bool adds)
{
    const plan *pl = c->plan;
    if (pl->rows > 0)
        product(x, c->rows * pl->rows, pl->c, pl->weights, y, pl->k, start, adds, c->scratch);
    else
        convolve(c, x, y, start, adds);
}

static void forward(const keel_call *c)
{
    run(c, c->in[0], c->out[0], c->node->n_weight > 1 ? c->weight[1] : NULL, false);
}

static void backward(const keel_call *c)
{
    if (c->in_grad[0]) run(c, c->out_grad[0], c->in_grad[0], NULL, c->in_adds[0]);
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* What a stretch adds to the gradient of some outputs. */
typedef struct part {
    const plan *pl;
    int64_t n, row;            /* places; from a line of turned places to the next */
    int64_t first, last;       /* outputs */
    const uint16_t *dy;        /* packed, of these outputs */
    const keel_bf16 *const *x; /* for each phase */
    keel_bf16 *turned[2], *copy;
    float *dw;
    bool adds; /* it is not the first stretch */
} part;

/* Places of a run of accumulators: runs of a stretch are about as long. */
static int64_t run_of(int64_t n)
{
    return keel_round_up(keel_div_up(n, keel_div_up(n, RUN)), SIDE);
}

static void copy_tiles(keel_bf16 *to, const keel_bf16 *x, int64_t row, int64_t steps)
{
    for (int64_t s = 0; s < steps; s++, x += SIDE)
        for (int64_t i = 0; i < SIDE; i++, to += SIDE) memcpy(to, x + i * row, SIDE * sizeof *to);
}

/* 32 channels from i on, which are turned, at one tap. */
static void add_tap(const part *p, line *l, const plane_tap *tap, int64_t i,
                    const keel_bf16 *turned)
{
    const plan *pl = p->pl;
    const bool copies = p->last - p->first >= COPIES_PAY && tap->shift % SIDE != 0;
    const keel_bf16 *const x = turned + tap->phase * SIDE * p->row + tap->shift;
    const int64_t run = run_of(p->n);
    for (int64_t q = 0; q < p->n; q += run) {
        const int64_t steps = blocks(at_most(p->n - q, run));
        left a = left_rows(x + q, p->row, SIDE);
        if (copies) {
            copy_tiles(p->copy, x + q, p->row, steps);
            a = left_rows(p->copy, SIDE, SIDE);
            a.next = SIDE * SIDE;
        }
        for (int64_t j = p->first; j < p->last; j += SIDE) {
            const int64_t step = (j - p->first) / SIDE * blocks(p->n) + q / SIDE;
            const place where = { .rows = at_most(pl->c - i, SIDE),
                                  .columns = at_most(p->last - j, SIDE),
                                  .apart = pl->k,
                                  .gradient = p->dw + (tap->tap * pl->c + i) * pl->k + j,
                                  .adds = p->adds || q > 0 };
            line_block(l, &a, p->dy + step * STEP_HALVES, steps, &where, GRADIENT);
        }
    }
}

/* 32 channels on their way to be turned, 16 of them at 32 places at a time, evenly over the steps
 * of the channels before them: at the last of these they are. */
typedef struct turning {
    beside work;
    const part *p;
    keel_bf16 *to;
    int64_t first; /* of the channels */
    int phase, half;
    int64_t q; /* place of the phase */
    int64_t count, steps, due;
} turning;

static void turn_next(turning *t)
{
    const part *p = t->p;
    const int64_t all = p->n + p->pl->at.reach, h = t->half * HALF;
    turn_some(t->to + (t->phase * SIDE + h) * p->row, p->row, p->x + t->phase * all, t->q, all,
              t->first + h, p->pl->c);
    t->half = !t->half;
    if (t->half) return;
    t->q += SIDE;
    if (t->q < p->row) return;
    t->q = 0;
    t->phase++;
}

static void turn_at_step(beside *work)
{
    turning *const t = (turning *)work;
    for (t->due += t->count; t->due >= t->steps; t->due -= t->steps) turn_next(t);
}

static turning turning_of(const part *p, int64_t first)
{
    const planes *at = &p->pl->at;
    return (turning){ .work = { turn_at_step },
                      .p = p,
                      .to = p->turned[first / SIDE % 2],
                      .first = first,
                      .count = at->read.n * p->row / HALF,
                      .steps = at->n_tap[0] * blocks(p->n) * blocks(p->last - p->first) };
}

static void add_part(const part *p)
{
    const int64_t channels = p->pl->c;
    turning next = turning_of(p, 0);
    line l;
    for (int64_t i = 0; i < next.count; i++) turn_next(&next);
    line_begin(&l);
    for (int64_t i = 0; i < channels; i += SIDE) {
        const keel_bf16 *const turned = next.to;
        const bool more = i + SIDE < channels;
        if (more) next = turning_of(p, i + SIDE);
        l.other = more ? &next.work : NULL;
        for (int t = 0; t < p->pl->at.n_tap[0]; t++) add_tap(p, &l, &p->pl->at.tap[t], i, turned);
    }
    line_end(&l, GRADIENT);
}

static void sum_stretches(const keel_call *c, float *dw)
{
    const plan *pl = c->plan;
    const planes *at = &pl->at;
    const int64_t half = sizeof(keel_bf16), outputs = outputs_at_once(pl);
    char *const scratch = c->scratch;
    const void **const x = (const void **)(scratch + pl->read_at);
    const void **const dy = (const void **)(scratch + pl->written_at);
    uint16_t *const packed = (uint16_t *)(scratch + pl->right_at);
    stretch s = { 0 };
    for (bool adds = false; next_stretch(at, &s, c->rows); adds = true) {
        const int64_t n = stretch_places(at, &s), all = n + at->reach, row = turned_row(pl, n);
        keel_bf16 *const turned = (keel_bf16 *)(scratch + pl->left_at);
        for (int r = 0; r < at->read.n; r++)
            list_places(at, &at->read, r, &s, c->in[0], pl->c * half, all, x + r * all);
        list_places(at, &at->written, 0, &s, c->out_grad[0], pl->k * half, n, dy);
        for (int64_t k = 0; k < pl->k; k += outputs) {
            const part some = { .pl = pl,
                                .n = n,
                                .row = row,
                                .first = k,
                                .last = at_most(pl->k, k + outputs),
                                .dy = packed,
                                .x = (const keel_bf16 *const *)x,
                                .turned = { turned, turned + at->read.n * SIDE * row },
                                .copy = (keel_bf16 *)(scratch + pl->copy_at),
                                .dw = dw,
                                .adds = adds };
            pack_dy(packed, (const keel_bf16 *const *)dy, n, some.first, some.last);
            add_part(&some);
        }
    }
}

/* The gradient of a call is summed apart before it is added to that of another: so the halves of a
 * step give the same bits whether one worker has both or two have one each. */
static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    const keel_node *n = c->node;
    float *const dw = c->weight_grad[0];
    float *const sum = c->weight_adds ? (float *)((char *)c->scratch + pl->sum_at) : dw;
    if (dw) sum_stretches(c, sum);
    for (int64_t i = 0; dw && sum != dw && i < keel_row_count(&n->weight[0]); i++) dw[i] += sum[i];
    if (n->n_weight < 2 || !c->weight_grad[1]) return;
    const keel_span places = { .out_grad = c->out_grad[0],
                               .rows = c->rows * (keel_row_count(&n->out[0]) / pl->k) };
    sum_places(&places, 1, pl->k, 0, pl->k, c->weight_grad[1], c->weight_adds);
}

const keel_kernel keel_kernel_conv2d_amx = {
    .op = &keel_op_conv2d,
    .name = "amx",
    .needs = TILES_NEED,
    .priority = KEEL_PRIORITY_OWN_CONV_TILES,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
