/* See _conv_winograd.h. */
#include "ops/cuda/_conv_winograd.h"
#include "ops/cuda/_product.h"
#include "ops/cuda/_winograd_tiles.h"
extern "C" {
#include "base/memory.h"
}

namespace
{
/* Of transformed values at a time. The emulator has small images, of which several pieces must not
 * have room together either. */
#ifdef __CUDACC__
const int64_t TILES_BYTES = 64 << 20;
#else
const int64_t TILES_BYTES = 256 << 10;
#endif
const int64_t FILTER_BYTES = 64 << 20;       /* of a transformed filter */
const int64_t ROW_MOST = INT32_MAX / POINTS; /* elements of a row, and of its tiles at one point */

struct piece { /* rows of a call that are computed at once */
    int64_t rows, count;
    int parts; /* in which the sums over tiles are cut */
    cuda_product_plan *product;
};
} // namespace

struct conv_winograd {
    conv_direction direction;
    tiles in, out; /* what is read and written; for the filter x and dy */
    tiles filter;
    piece whole, rest;
    int64_t filter_at, in_at, out_at; /* bytes into scratch; the product's own is at 0 */
};

namespace
{
/* ---- prepared ---------------------------------------------------------------------------------
 */

bool is_3x3(const conv_graph *x)
{
    const cuda_geometry *g = x->g;
    bool is = x->type == KEEL_FLOAT32 && x->float32 != KEEL_FLOAT32_FAST && g->groups == 1 &&
              g->dims == 2;
    for (int d = 0; is && d < 2; d++)
        is = g->size[d] == TAPS && g->stride[d] == 1 && g->dilation[d] == 1;
    return is;
}

tiles image_of(const int64_t dim[], int64_t c)
{
    tiles a = {};
    a.h = (int)dim[0], a.w = (int)dim[1], a.c = (int)c;
    a.step = a.c;
    a.line = a.w * a.c;
    a.row = (int64_t)a.h * a.line;
    return a;
}

void lay_tiles(conv_winograd *pl, const cuda_geometry *g)
{
    const bool data = pl->direction == CONV_DATA;
    const tiles x = image_of(g->x, g->c), y = image_of(g->y, g->k);
    pl->in = data ? y : x;
    pl->out = data ? x : y;
    pl->in.top = (int)(data ? TAPS - 1 - g->before[0] : g->before[0]);
    pl->in.left = (int)(data ? TAPS - 1 - g->before[1] : g->before[1]);
    pl->in.down = pl->out.down = (pl->out.h + TILE - 1) / TILE;
    pl->in.across = pl->out.across = (pl->out.w + TILE - 1) / TILE;
}

/* A filter is the one tile of an image of 3x3 places with C K channels. Turned by 180 degrees its
 * places are in reverse. */
void lay_filter(conv_winograd *pl, const cuda_geometry *g)
{
    const int64_t dim[] = { TAPS, TAPS };
    tiles *f = &pl->filter;
    *f = image_of(dim, g->c * g->k);
    f->down = f->across = 1;
    if (pl->direction == CONV_DATA) f->step = -f->step, f->line = -f->line;
}

int64_t tiles_of(const conv_winograd *pl) /* of a row */
{
    return (int64_t)pl->out.down * pl->out.across;
}

/* Products are at most half of the direct ones, and channels enough for the sums to be as exact
 * (see _conv_winograd.h). */
bool pays(const conv_graph *x)
{
    const cuda_geometry *g = x->g;
    const int64_t *dim = x->direction == CONV_DATA ? g->x : g->y;
    const int64_t across = (dim[1] + TILE - 1) / TILE, down = (dim[0] + TILE - 1) / TILE;
    const int64_t summed = x->direction == CONV_FORWARD ? g->c : g->k;
    return g->c % 4 == 0 && g->k % 4 == 0 && g->c >= 32 && g->k >= 32 &&
           (x->direction == CONV_FILTER || summed >= 64) &&
           2 * POINTS * down * across <= TAPS * TAPS * dim[0] * dim[1];
}

/* What is counted by 32 bits. */
bool is_small(const cuda_geometry *g)
{
    const int64_t most = g->c > g->k ? g->c : g->k;
    const int64_t x = (g->x[0] + TILE) * (g->x[1] + TILE), y = (g->y[0] + TILE) * (g->y[1] + TILE);
    return x <= ROW_MOST / most && y <= ROW_MOST / most &&
           g->c * g->k <= FILTER_BYTES / (POINTS * (int64_t)sizeof(float));
}

/* In how many parts sums over tiles are cut: a gradient of 64x64 weights is 36 blocks of a product,
 * and a GPU has more than a hundred multiprocessors for them. */
int parts_wanted(const conv_winograd *pl)
{
    const int64_t blocks = (int64_t)((pl->in.c + 63) / 64) * ((pl->out.c + 63) / 64) * POINTS;
    int parts = 1;
    while (pl->direction == CONV_FILTER && parts < 8 && blocks * parts < 256) parts *= 2;
    return parts;
}

/* Pieces of equal size, but for the last. A piece has the sums over its tiles cut in so many equal
 * parts, or in fewer where they are not. */
void divide(conv_winograd *pl, int64_t rows)
{
    const int64_t each = POINTS * tiles_of(pl) * (pl->in.c + pl->out.c) * (int64_t)sizeof(float);
    int parts = parts_wanted(pl);
    int64_t most = TILES_BYTES / each;
    most = most > parts ? most - most % parts : most < 1 ? 1 : most;
    const int64_t pieces = (rows + most - 1) / most;
    int64_t of = (rows + pieces - 1) / pieces;
    if (most >= parts) of = (of + parts - 1) / parts * parts;
    of = of > rows ? rows : of;
    while (of * tiles_of(pl) % parts) parts /= 2;
    pl->whole.rows = of;
    pl->whole.count = rows / of;
    pl->whole.parts = parts;
    pl->rest.rows = rows % of;
    pl->rest.count = pl->rest.rows > 0;
    pl->rest.parts = pl->rest.rows * tiles_of(pl) % parts ? 1 : parts;
}

/* Point by point, and for the filter part by part: sums that are not cut are added to the first
 * parts of those that are. */
cuda_product product_of(const conv_winograd *pl, const piece *of)
{
    const keel_dtype f = KEEL_FLOAT32;
    const int64_t n = pl->out.c, k = pl->in.c, filter = n * k;
    const int64_t count = of->rows * tiles_of(pl) / of->parts, batch = POINTS * of->parts;
    const cuda_matrix in = { pl->direction == CONV_FILTER, count * k, 16 };
    const cuda_matrix out = { false, count * n, 16 };
    const cuda_matrix turned = { pl->direction == CONV_DATA, filter, 16 };
    const cuda_matrix sums = { false, of->parts == 1 ? filter * pl->whole.parts : filter, 16 };
    if (pl->direction == CONV_FILTER) return { k, n, count, batch, in, out, sums, f, f, false };
    return { count, n, k, batch, in, turned, out, f, f, false };
}

keel_status prepare_piece(const keel_prepare *p, const conv_winograd *pl, piece *to,
                          int64_t *scratch)
{
    int64_t bytes = 0;
    if (to->count == 0) return KEEL_OK;
    const cuda_product of = product_of(pl, to);
    KEEL_TRY(cuda_product_prepare(p, &of, &to->product, &bytes));
    if (bytes > *scratch) *scratch = bytes;
    return KEEL_OK;
}

/* Takes room for some channels at all points. */
int64_t room(int64_t *scratch, int64_t elements)
{
    const int64_t at = *scratch;
    *scratch += cuda_piece(POINTS * elements * (int64_t)sizeof(float));
    return at;
}

keel_status prepare_all(const keel_prepare *p, conv_winograd *pl, const conv_graph *x,
                        int64_t *scratch)
{
    lay_tiles(pl, x->g);
    lay_filter(pl, x->g);
    divide(pl, x->rows);
    KEEL_TRY(prepare_piece(p, pl, &pl->whole, scratch));
    KEEL_TRY(prepare_piece(p, pl, &pl->rest, scratch));
    const int64_t most = pl->whole.rows * tiles_of(pl);
    pl->filter_at = room(scratch, pl->whole.parts * (int64_t)pl->filter.c);
    pl->in_at = room(scratch, most * pl->in.c);
    pl->out_at = room(scratch, most * pl->out.c);
    return KEEL_OK;
}
} // namespace

keel_status conv_winograd_create(const keel_prepare *p, const conv_graph *x, conv_winograd **out,
                                 int64_t *scratch)
{
    int64_t bytes = 0;
    if (!is_3x3(x) || !pays(x) || !is_small(x->g)) return KEEL_EUNSUP;
    conv_winograd *pl = static_cast<conv_winograd *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    pl->direction = x->direction;
    const keel_status s = prepare_all(p, pl, x, &bytes);
    if (s < 0) {
        conv_winograd_destroy(pl);
        return s;
    }
    *scratch = bytes;
    *out = pl;
    return KEEL_OK;
}

void conv_winograd_destroy(conv_winograd *pl)
{
    if (!pl) return;
    cuda_product_release(pl->whole.product);
    cuda_product_release(pl->rest.product);
    keel_free(pl);
}

/* ---- run --------------------------------------------------------------------------------------
 */

namespace
{
struct run_args {
    const keel_call *c;
    const conv_winograd *pl;
    const float *x, *w, *y, *bias;
    bool adds;
};

float *scratch_of(const run_args &r, int64_t at)
{
    return reinterpret_cast<float *>(static_cast<char *>(r.c->scratch) + at);
}

unsigned blocks_of(int threads)
{
    return gpu_blocks((threads + TILE_THREADS - 1) / TILE_THREADS, CUDA_BLOCKS);
}

int threads_of(const tiles &a, int64_t rows)
{
    return (int)(rows * a.down * a.across * (a.c / 4));
}

template <int N>
float *spread(const run_args &r, int64_t to, const float *from, const tiles &a, int64_t rows)
{
    const int threads = threads_of(a, rows);
    cuda_launch(r.c, spread_kernel<N>, blocks_of(threads), TILE_THREADS, 0, scratch_of(r, to), from,
                a, threads);
    return scratch_of(r, to);
}

template <int N>
void gather(const run_args &r, const float *to, int64_t from, const float *bias, const tiles &a,
            int64_t rows, int parts)
{
    const int threads = threads_of(a, rows);
    cuda_launch(r.c, r.adds ? gather_kernel<N, true> : gather_kernel<N, false>, blocks_of(threads),
                TILE_THREADS, 0, const_cast<float *>(to), scratch_of(r, from), bias, a, threads,
                parts);
}

void spread_filter(const run_args &r)
{
    const tiles &f = r.pl->filter;
    const float *first = r.w + (f.step < 0 ? (TAPS * TAPS - 1) * (int64_t)f.c : 0);
    spread<TAPS>(r, r.pl->filter_at, first, f, 1);
}

/* Some rows, from `row` on. */
bool run_piece(const run_args &r, const piece *of, int64_t row)
{
    const conv_winograd *pl = r.pl;
    const bool data = pl->direction == CONV_DATA;
    const float *in = (data ? r.y : r.x) + row * pl->in.row;
    const float *out = (data ? r.x : r.y) + row * pl->out.row;
    const float *a = spread<SIDE>(r, pl->in_at, in, pl->in, of->rows);
    float *b = scratch_of(r, pl->filter_at), *to = scratch_of(r, pl->out_at);
    if (pl->direction == CONV_FILTER) {
        const float *dy = spread<TILE>(r, pl->out_at, out, pl->out, of->rows);
        return cuda_product_run(r.c, of->product, a, dy, nullptr, b, row > 0, r.c->scratch);
    }
    if (!cuda_product_run(r.c, of->product, a, b, nullptr, to, false, r.c->scratch)) return false;
    gather<TILE>(r, out, pl->out_at, r.bias, pl->out, of->rows, 1);
    return true;
}
} // namespace

void conv_winograd_run(const keel_call *c, const conv_winograd *pl, const float *x, const float *w,
                       const float *y, const float *bias, bool adds)
{
    const run_args r = { c, pl, x, w, y, bias, adds };
    int64_t row = 0;
    if (pl->direction != CONV_FILTER) spread_filter(r);
    for (int64_t i = 0; i < pl->whole.count; i++, row += pl->whole.rows)
        if (!run_piece(r, &pl->whole, row)) return;
    if (pl->rest.count && !run_piece(r, &pl->rest, row)) return;
    if (pl->direction == CONV_FILTER)
        gather<TAPS>(r, w, pl->filter_at, nullptr, pl->filter, 1, pl->whole.parts);
}
