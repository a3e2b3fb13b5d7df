/* Dense in float32 on rows of many places: three products of matrices.
 *
 *     forward   y  [places, K] = x  [places, C] W  [C, K] + b
 *     backward  dx [places, C] = dy [places, K] Wt [K, C]
 *     weights   dW [C, K] = xt [C, places] dy [places, K]
 *
 * W and its transpose are packed once a step, for all workers. GROUP places are multiplied by LINES
 * lines of a panel at a time: these stay in a cache, and so do the places. Places are read where
 * they are. For weight gradients STRETCH places are packed, CHANNELS of x at a time, because their
 * rows are often so far apart that they share few sets of the cache.
 *
 * Nearly all work is whole blocks of 6 places and a panel's columns. Their loop has no prefetch and
 * no mask, which cost the loop of _blocks.h a tenth of its speed with AVX2; a block first
 * prefetches its share of the next panel. The rest goes to _blocks.h. Both add the terms of a sum
 * one after another, so a place has the same bits in either.
 *
 * A sum over places takes a stretch at a time, from the first row of the call on. */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "ops/x86/_panels.h"

KEEL_USES_OP(dense);

enum { ROWS = 6, GROUP = 192, CHANNELS = 384, GROUPED = 8, PANEL_LINES = PANEL * 4 / LINE };
#ifdef __AVX512F__
enum { LINES = 768, STRETCH = 384 }; /* in the second-level cache */
#else
enum { LINES = 384, STRETCH = 256 }; /* in the first-level cache */
#endif

/* Products ------------------------------------------------------------------------------------- */

/* Lines of a panel to prefetch, `apart` bytes from one to the next. */
typedef struct soon {
    const char *first;
    int64_t lines, apart;
} soon;

/* ROWS rows of p from i on, all PANEL columns. packed: a column of ROWS values is next to the one
 * before it; otherwise a_step is 1. */
INLINE void whole_block(const product *p, int64_t i, soon next, const bool packed)
{
    vf sum[ROWS][VECTORS];
    const float *a = p->a + i * p->a_row, *w = p->w;
    float *const out = p->out + i * p->out_row;
    const int64_t a_row = packed ? 1 : p->a_row, a_step = packed ? ROWS : 1;
    for (int64_t l = 0; l < next.lines; l++, next.first += next.apart)
        EACH(s, PANEL_LINES) __builtin_prefetch(next.first + s * LINE, 0, 2);
    EACH(r, ROWS)
        EACH(s, PANEL_LINES) fetch_to_write(out + r * p->out_row + s * LINE / (int64_t)sizeof *out);
    if (p->resumes)
        EACH(r, ROWS)
            EACH(v, VECTORS) sum[r][v] = vf_load(out + r * p->out_row + v * LANES);
    else
        EACH(r, ROWS)
            EACH(v, VECTORS) sum[r][v] = p->start ? vf_load(p->start + v * LANES) : vf_zero();
    for (int64_t j = 0; j < p->inner; j++, a += a_step, w += PANEL) {
        vf of_w[VECTORS];
        EACH(v, VECTORS) of_w[v] = vf_load(w + v * LANES);
        EACH(r, ROWS) {
            const vf one = vf_set(a[r * a_row]);
            EACH(v, VECTORS) sum[r][v] = vf_fma(one, of_w[v], sum[r][v]);
        }
    }
    if (p->adds)
        EACH(r, ROWS)
            EACH(v, VECTORS)
                sum[r][v] = vf_add(vf_load(out + r * p->out_row + v * LANES), sum[r][v]);
    EACH(r, ROWS)
        EACH(v, VECTORS) vf_store(out + r * p->out_row + v * LANES, sum[r][v]);
}

/* Numbers in registers, since a struct would be passed in memory. */
static __attribute__((noinline)) void block_in_place(const product *p, int64_t i, const char *next,
                                                     int64_t lines)
{
    whole_block(p, i, (soon){ next, lines, PANEL * sizeof(float) }, false);
}

static __attribute__((noinline)) void block_packed(const product *p, const char *next,
                                                   int64_t lines, int64_t apart)
{
    whole_block(p, 0, (soon){ next, lines, apart }, true);
}

/* What block b prefetches, if each prefetches `each` lines until all are. */
static inline soon share_of(soon all, int64_t b, int64_t each)
{
    const int64_t from = b * each, left = all.lines - from;
    return (soon){ all.first + from * all.apart, at_most(left, each), all.apart };
}

/* Rows 0 to n times a panel; `next`: the next panel. */
static void panel(const product *p, int64_t n, int64_t columns, soon next)
{
    const int64_t whole = columns == PANEL ? n / ROWS : 0;
    const int64_t each = whole > 0 ? (next.lines + whole - 1) / whole : 0;
    for (int64_t b = 0; b < whole; b++) {
        const soon some = share_of(next, b, each);
        block_in_place(p, b * ROWS, some.first, some.lines);
    }
    product rest = *p;
    rest.a += whole * ROWS * p->a_row;
    rest.out += whole * ROWS * p->out_row;
    if (whole * ROWS < n) multiply(&rest, n - whole * ROWS, columns);
}

/* out [n, columns] = a [n, inner] times packed weights. */
static void places(const product *all, const float *packed, int64_t n, int64_t columns)
{
    const int64_t inner = all->a_row, parts = (inner + LINES - 1) / LINES;
    for (int64_t i = 0; i < n; i += GROUP)
        for (int64_t part = 0; part < parts; part++) {
            const int64_t j = inner * part / parts, end = inner * (part + 1) / parts;
            const float *w = packed;
            for (int64_t k = 0; k < columns; k += PANEL) {
                const int64_t width = at_most(columns - k, PANEL);
                product p = *all;
                p.a += i * inner + j;
                p.a_step = 1;
                p.w_row = up(width, LANES);
                p.w = w + j * p.w_row;
                p.inner = end - j;
                p.out += i * columns + k;
                p.out_row = columns;
                if (p.start) p.start += k;
                p.resumes = part > 0;
                p.adds = all->adds && part == 0;
                w += inner * p.w_row;
                const bool more = k + 2 * PANEL <= columns;
                const soon next = { (const char *)(w + j * PANEL), more ? end - j : 0,
                                    PANEL * sizeof(float) };
                panel(&p, at_most(n - i, GROUP), width, next);
            }
        }
}

/* Prepare -------------------------------------------------------------------------------------- */

typedef struct plan {
    const keel_derived *packed; /* NULL in the pass that makes the gradient of weights */
    int64_t c, k, places;       /* places of a row */
    int64_t apart_at;           /* floats before the gradients in scratch that are added later */
} plan;

/* Scratch for weight gradients: packed x, then a panel of dy. A block of x is read and written by
 * vectors, which reach beyond its last value. */
enum { X_FLOATS = (CHANNELS + ROWS) * STRETCH + LANES, DY_FLOATS = STRETCH * PANEL };

/* Where this kernel is faster than oneDNN: everywhere with AVX2. On an Intel processor with
 * AVX-512, its time over oneDNN's, of one core that does nothing else:
 *
 *     forward, backward: wide values from narrower ones      0.72 to 1.03
 *     forward, backward of other layers                      0.92 to 1.20
 *     weight gradient of many weights over many places       0.81 to 1.05
 *     weight gradient of other layers                        0.99 to 1.11
 *
 * In networks it gains more than these say, since it asks for the lines that it will write: steps
 * of gpt take 0.95 of the time, of convnexttiny 0.96, of lstm 0.97. Processors that have products
 * of bfloat16 but no tiles are AMD's: oneDNN reaches 0.83 to 0.89 of the peak there, and this
 * kernel was not measured. */
static bool pays(const keel_prepare *p)
{
    enum { NARROW = 96, WEIGHTS = 1 << 17, PLACES = 1024 };
    const int64_t c = p->node->weight[0].shape.dim[0], k = p->node->weight[0].shape.dim[1];
    const int level = keel_cpu_level();
    if (LANES < 16) return level < KEEL_CPU_AVX512;
    if (level == KEEL_CPU_AVX512_BF16) return false;
    if (p->pass == KEEL_FORWARD) return c >= NARROW && k > c;
    if (p->pass == KEEL_BACKWARD) return k >= NARROW && c > k;
    return c * k >= WEIGHTS && p->rows * (keel_row_count(&p->node->in[0]) / c) >= PLACES;
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    const int64_t *w = p->node->weight[0].shape.dim;
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || p->node->in[0].shape.rank < 2 || !pays(p))
        return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    *pl = (plan){ .c = w[0], .k = w[1], .places = keel_row_count(&p->node->in[0]) / w[0] };
    keel_status s = KEEL_OK;
    if (p->pass != KEEL_WEIGHTS) {
        s = panels_derive(p, &(panels){ 1, pl->c, pl->k, p->pass == KEEL_BACKWARD }, &pl->packed);
    } else {
        pl->apart_at = up(X_FLOATS + DY_FLOATS, LANES);
        p->scratch = pl->apart_at * (int64_t)sizeof(float);
        if (p->weight_adds) p->scratch += (pl->c + 1) * pl->k * (int64_t)sizeof(float);
    }
    if (s < 0)
        keel_free(pl);
    else
        p->plan = pl;
    return s;
}

/* Passes --------------------------------------------------------------------------------------- */

static void forward(const keel_call *c)
{
    const plan *pl = c->plan;
    const product p = { .a = c->in[0],
                        .a_row = pl->c,
                        .out = c->out[0],
                        .start = c->node->n_weight > 1 ? c->weight[1] : NULL };
    places(&p, pl->packed->data, c->rows * pl->places, pl->k);
}

static void backward(const keel_call *c)
{
    const plan *pl = c->plan;
    const product p = {
        .a = c->out_grad[0], .a_row = pl->k, .out = c->in_grad[0], .adds = c->in_adds[0]
    };
    if (p.out) places(&p, pl->packed->data, c->rows * pl->places, pl->c);
}

/* Places at the end of a block whose vectors reach into the block behind it. */
enum { REACH = (LANES - 1) / ROWS };

/* Packs `channels` channels of n places of x, `row` apart: blocks of [n][ROWS]. A vector is written
 * for each place; what it has beyond ROWS values is overwritten by the next. GROUPED blocks are
 * packed together, so that a line of x is read once. */
static void pack_x(float *to, const float *x, int64_t row, int64_t channels, int64_t n)
{
    int64_t j = 0;
    for (; j + GROUPED * ROWS + LANES - ROWS <= channels; j += GROUPED * ROWS) {
        const float *from = x + j;
        float *at = to + j * n;
        int64_t i = 0;
        for (; i < n - REACH; i++, from += row, at += ROWS)
            EACH(b, GROUPED) vf_store(at + b * ROWS * n, vf_load(from + b * ROWS));
        for (; i < n; i++, from += row, at += ROWS)
            EACH(b, GROUPED) /* the block behind it has been begun */
                vf_store_some(vm_first(ROWS), at + b * ROWS * n, vf_load(from + b * ROWS));
    }
    for (to += j * n; j < channels; j += ROWS) {
        const vm some = vm_first(channels - j);
        const float *from = x + j;
        if (channels - j >= LANES)
            for (int64_t i = 0; i < n; i++, from += row, to += ROWS) vf_store(to, vf_load(from));
        else
            for (int64_t i = 0; i < n; i++, from += row, to += ROWS)
                vf_store(to, vf_load_some(some, from));
    }
}

/* As pack_dy, of a panel's columns: places take turns with two sums of each. */
static void pack_whole(float *to, const float *dy, int64_t row, int64_t n, float *db)
{
    vf sum[2][VECTORS];
    EACH(t, 2)
        EACH(v, VECTORS) sum[t][v] = vf_zero();
    int64_t i = 0;
    for (; i + 2 <= n; i += 2, dy += 2 * row, to += 2 * PANEL)
        EACH(t, 2)
            EACH(v, VECTORS) {
                const vf x = vf_load(dy + t * row + v * LANES);
                vf_store(to + t * PANEL + v * LANES, x);
                sum[t][v] = vf_add(sum[t][v], x);
            }
    if (i < n)
        EACH(v, VECTORS) {
            const vf x = vf_load(dy + v * LANES);
            vf_store(to + v * LANES, x);
            sum[0][v] = vf_add(sum[0][v], x);
        }
    EACH(v, VECTORS)
        if (db)
            vf_store(db + v * LANES, vf_add(vf_load(db + v * LANES), vf_add(sum[0][v], sum[1][v])));
}

/* Packs `width` columns of n places of dy, and adds up each column, from `db` on if that is not
 * NULL. */
static void pack_dy(float *to, const float *dy, int64_t row, int64_t width, int64_t n, float *db)
{
    if (width == PANEL) {
        pack_whole(to, dy, row, n, db);
        return;
    }
    for (int64_t j = 0; j < width; j += LANES) {
        const vm some = vm_first(width - j);
        const int64_t step = up(width, LANES);
        const float *from = dy + j;
        float *at = to + j;
        vf sum = vf_zero();
        for (int64_t i = 0; i < n; i++, from += row, at += step) {
            const vf v = vf_load_some(some, from);
            vf_store(at, v);
            sum = vf_add(sum, v);
        }
        if (db) vf_store_some(some, db + j, vf_add(vf_load_some(some, db + j), sum));
    }
}

/* Sets dw [channels, K], or adds to it, from n places of dy and packed channels of x. */
static void add_panels(const plan *pl, const float *x, int64_t channels, const float *dy, int64_t n,
                       float *dw, bool adds, float *db, float *room)
{
    for (int64_t k = 0; k < pl->k; k += PANEL) {
        const int64_t width = at_most(pl->k - k, PANEL);
        const bool more = k + 2 * PANEL <= pl->k;
        const soon next = { (const char *)(dy + k + PANEL), more ? n : 0,
                            pl->k * (int64_t)sizeof(float) };
        const int64_t each = (next.lines * ROWS + channels - 1) / channels;
        pack_dy(room, dy + k, pl->k, width, n, db ? db + k : NULL);
        for (int64_t i = 0; dw && i < channels; i += ROWS) {
            const product p = { .a = x + i * n,
                                .a_row = 1,
                                .a_step = ROWS,
                                .w = room,
                                .w_row = up(width, LANES),
                                .inner = n,
                                .out = dw + i * pl->k + k,
                                .out_row = pl->k,
                                .adds = adds };
            const soon some = share_of(next, i / ROWS, each);
            if (width == PANEL && i + ROWS <= channels)
                block_packed(&p, some.first, some.lines, some.apart);
            else
                multiply(&p, at_most(channels - i, ROWS), width);
        }
    }
}

static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t n_all = c->rows * pl->places;
    const float *x = c->in[0], *dy = c->out_grad[0];
    float *const to[] = { c->weight_grad[0], c->node->n_weight > 1 ? c->weight_grad[1] : NULL };
    float *const packed = c->scratch, *const room = packed + X_FLOATS;
    float *const apart = packed + pl->apart_at;
    float *const dw = to[0] && c->weight_adds ? apart : to[0];
    float *const db = to[1] && c->weight_adds ? apart + pl->c * pl->k : to[1];
    if (db) memset(db, 0, (size_t)pl->k * sizeof *db);
    for (int64_t i = 0, n; i < n_all; i += n, x += n * pl->c, dy += n * pl->k) {
        n = at_most(n_all - i, STRETCH);
        for (int64_t j = 0, some; j < pl->c; j += some) {
            some = at_most(pl->c - j, CHANNELS);
            pack_x(packed, x + j, pl->c, some, n);
            add_panels(pl, packed, some, dy, n, dw ? dw + j * pl->k : NULL, i > 0,
                       j == 0 ? db : NULL, room);
        }
    }
    if (c->weight_adds && dw) VECTOR_MOVE(to[0], dw, pl->c * pl->k, true);
    if (c->weight_adds && db) VECTOR_MOVE(to[1], db, pl->k, true);
}

const keel_kernel VECTOR_KERNEL(dense_places) = {
    .op = &keel_op_dense,
    .name = "places_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(OWN_1X1),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
