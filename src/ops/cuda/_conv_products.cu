/* See _conv_products.h. */
#include "ops/cuda/_conv_products.h"
#include "ops/cuda/_product.h"
extern "C" {
#include "base/memory.h"
}

namespace
{
const int64_t WINDOWS_BYTES = 64 << 20;      /* at a time */
const int64_t WINDOWS_MOST = INT32_MAX / 16; /* elements of a piece: of x, or windows */

/* What a thread needs to find a tap of a place. Missing dims are of size 1. */
struct window_args {
    int x[3], y[3], size[3], stride[3], dilation[3], before[3];
    int c, taps, per; /* per: channels that a thread moves at once, 4 or 1 */
    divider of_x[3], of_y[3], of_size[3], of_stride[3], groups,
        line; /* groups: of a place, c / per;
                line: taps of one, times c */
};

struct piece { /* rows of a call that are computed at once */
    int64_t rows, count;
    cuda_product_plan *product;
};
} // namespace

struct conv_products {
    conv_direction direction;
    window_args at;
    int64_t x_row, y_row, taps_c; /* elements: of a row of x and of y; of a window */
    bool biased;                  /* the product adds the bias */
    piece whole, rest;
    int64_t windows_at; /* bytes into scratch; the product's own is at 0 */
};

namespace
{
/* ---- windows ----------------------------------------------------------------------------------
 */

template <int PER> __device__ __forceinline__ void put(float *to, const float *from)
{
    if (PER == 4) {
        float v[4] = { 0, 0, 0, 0 };
        if (from) load4(v, from);
        store4(to, v);
    } else
        *to = from ? *from : 0;
}

/* to[places, taps, c] = windows of x, whose padding is 0. A thread has some channels of a place and
 * goes through its taps. */
template <int PER>
__global__ void __launch_bounds__(CUDA_THREADS)
    windows_kernel(float *to, const float *x, const window_args a, int threads)
{
    const int step = (int)gridDim.x * CUDA_THREADS;
    for (int t = (int)blockIdx.x * CUDA_THREADS + (int)threadIdx.x; t < threads; t += step) {
        int row = t, at[3];
        const int k = a.groups.take(&row) * PER;
        const int place = row;
        for (int d = 2; d >= 0; d--) at[d] = a.of_y[d].take(&row) * a.stride[d] - a.before[d];
        float *out = to + (int64_t)place * a.taps * a.c + k;
        const float *in = x + (int64_t)row * a.x[0] * a.x[1] * a.x[2] * a.c + k;
        for (int i = 0; i < a.size[0]; i++)
            for (int j = 0; j < a.size[1]; j++) {
                const int p = at[0] + i * a.dilation[0], q = at[1] + j * a.dilation[1];
                const bool line = p >= 0 && p < a.x[0] && q >= 0 && q < a.x[1];
                for (int l = 0; l < a.size[2]; l++, out += a.c) {
                    const int r = at[2] + l * a.dilation[2];
                    const bool there = line && r >= 0 && r < a.x[2];
                    put<PER>(out, there ? in + ((p * a.x[1] + q) * a.x[2] + r) * a.c : nullptr);
                }
            }
    }
}

/* The same where the taps of a line are neighbours: a thread has an element, and so have its
 * neighbours, of x and of the windows. For channels that are no fours, such as those of images. */
__global__ void __launch_bounds__(CUDA_THREADS)
    lines_kernel(float *to, const float *x, const window_args a, int elements)
{
    const int step = (int)gridDim.x * CUDA_THREADS;
    for (int t = (int)blockIdx.x * CUDA_THREADS + (int)threadIdx.x; t < elements; t += step) {
        int row = t, at[3];
        const int e = a.line.take(&row), j = a.of_size[1].take(&row), i = a.of_size[0].take(&row);
        for (int d = 2; d >= 0; d--) at[d] = a.of_y[d].take(&row) * a.stride[d] - a.before[d];
        const int p = at[0] + i * a.dilation[0], q = at[1] + j * a.dilation[1];
        const int r = at[2] * a.c + e, width = a.x[2] * a.c; /* elements of a line of x */
        const bool there = p >= 0 && p < a.x[0] && q >= 0 && q < a.x[1] && r >= 0 && r < width;
        to[t] = there ? x[(int64_t)((row * a.x[0] + p) * a.x[1] + q) * width + r] : 0;
    }
}

/* The place of y whose window has x's place at this tap; -1: there is none. */
__device__ __forceinline__ int place_of(const window_args &a, int d, int place, int tap)
{
    const int from = place + a.before[d] - tap * a.dilation[d];
    const int at = from < 0 ? 0 : a.of_stride[d].quotient(from);
    return from >= 0 && at * a.stride[d] == from && at < a.y[d] ? at : -1;
}

/* x = the sums of its shares in windows, over taps in their order; or += them. */
template <int PER>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    shares_kernel(float *x, const float *windows, const float *bias, const window_args a,
                  int threads, bool adds)
{
    const int step = (int)gridDim.x * CUDA_THREADS;
    for (int t = (int)blockIdx.x * CUDA_THREADS + (int)threadIdx.x; t < threads; t += step) {
        int row = t, at[3];
        const int k = a.groups.take(&row) * PER;
        float sum[PER], share[PER];
        float *out = x + (int64_t)row * a.c + k;
        for (int d = 2; d >= 0; d--) at[d] = a.of_x[d].take(&row);
        for (int e = 0; e < PER; e++) sum[e] = bias ? bias[k + e] : 0;
        for (int i = 0; i < a.size[0]; i++)
            for (int j = 0; j < a.size[1]; j++) {
                const int p = place_of(a, 0, at[0], i), q = place_of(a, 1, at[1], j);
                for (int l = 0; l < a.size[2]; l++) {
                    const int r = place_of(a, 2, at[2], l);
                    if (p < 0 || q < 0 || r < 0) continue;
                    const int64_t place = ((int64_t)(row * a.y[0] + p) * a.y[1] + q) * a.y[2] + r;
                    const int tap = (i * a.size[1] + j) * a.size[2] + l;
                    const float *from = windows + (place * a.taps + tap) * a.c + k;
                    if (PER == 4)
                        load4(share, from);
                    else
                        share[0] = *from;
                    for (int e = 0; e < PER; e++) sum[e] += share[e];
                }
            }
        if (adds)
            for (int e = 0; e < PER; e++) sum[e] += out[e];
        if (PER == 4)
            store4(out, sum);
        else
            *out = sum[0];
    }
}

/* ---- prepared ---------------------------------------------------------------------------------
 */

/* Dims that a geometry has not come first. */
window_args args_of(const cuda_geometry *g)
{
    window_args a = {};
    const int skip = 3 - g->dims;
    a.taps = 1;
    for (int i = 0; i < 3; i++) {
        const int d = i - skip;
        a.x[i] = d < 0 ? 1 : (int)g->x[d];
        a.y[i] = d < 0 ? 1 : (int)g->y[d];
        a.size[i] = d < 0 ? 1 : (int)g->size[d];
        a.stride[i] = d < 0 ? 1 : (int)g->stride[d];
        a.dilation[i] = d < 0 ? 1 : (int)g->dilation[d];
        a.before[i] = d < 0 ? 0 : (int)g->before[d];
        a.taps *= a.size[i];
    }
    a.c = (int)g->c;
    a.per = g->c % 4 == 0 ? 4 : 1;
    for (int i = 0; i < 3; i++) {
        a.of_x[i] = divider::of(a.x[i]);
        a.of_y[i] = divider::of(a.y[i]);
        a.of_size[i] = divider::of(a.size[i]);
        a.of_stride[i] = divider::of(a.stride[i]);
    }
    a.groups = divider::of(a.c / a.per);
    a.line = divider::of(a.size[2] * a.c);
    return a;
}

int aligned_to(int64_t bytes)
{
    int to = 16;
    while (bytes % to) to /= 2;
    return to;
}

cuda_product product_of(const conv_products *pl, const conv_graph *x, int64_t rows, bool bias)
{
    const cuda_geometry *g = x->g;
    const int windows = aligned_to(pl->taps_c * (int64_t)sizeof(float));
    const int64_t places = rows * (pl->y_row / g->k);
    const cuda_matrix of_x = { false, 0, windows }, of_y = { false, 0, x->aligned_y };
    const keel_dtype f = KEEL_FLOAT32;
    if (pl->direction == CONV_FORWARD)
        return { places, g->k, pl->taps_c, 1, of_x, { false, 0, 16 }, of_y, f, f, bias };
    if (pl->direction == CONV_DATA)
        return { places, pl->taps_c, g->k, 1, of_y, { true, 0, 16 }, of_x, f, f, bias };
    const cuda_matrix turned = { true, 0, windows };
    return { pl->taps_c, g->k, places, 1, turned, of_y, { false, 0, 16 }, f, f, false };
}

keel_status prepare_piece(const keel_prepare *p, conv_products *pl, const conv_graph *x, piece *to,
                          bool bias, int64_t *scratch)
{
    int64_t bytes = 0;
    if (to->count == 0) return KEEL_OK;
    const cuda_product of = product_of(pl, x, to->rows, bias);
    KEEL_TRY(cuda_product_prepare(p, &of, &to->product, &bytes));
    if (bytes > *scratch) *scratch = bytes;
    return KEEL_OK;
}

/* Windows of as many rows as have room together, and whose places kernels count by 32 bits. */
keel_status divide(conv_products *pl, const conv_graph *x, int64_t *windows)
{
    const int64_t each = pl->y_row / x->g->k * pl->taps_c;
    const int64_t widest = each > pl->x_row ? each : pl->x_row;
    if (widest > WINDOWS_MOST || pl->y_row > WINDOWS_MOST) return KEEL_EUNSUP;
    int64_t most = WINDOWS_BYTES / (int64_t)sizeof(float) / each;
    if (most > WINDOWS_MOST / widest) most = WINDOWS_MOST / widest; /* large strides: few windows */
    most = most > x->rows ? x->rows : most < 1 ? 1 : most;
    pl->whole.rows = most;
    pl->whole.count = x->rows / most;
    pl->rest.rows = x->rows % most;
    pl->rest.count = pl->rest.rows > 0;
    *windows = cuda_piece(most * each * (int64_t)sizeof(float));
    return KEEL_OK;
}

keel_status prepare_pieces(const keel_prepare *p, conv_products *pl, const conv_graph *x,
                           int64_t *scratch)
{
    KEEL_TRY(prepare_piece(p, pl, x, &pl->whole, pl->biased, scratch));
    return prepare_piece(p, pl, x, &pl->rest, pl->biased, scratch);
}

void forget(conv_products *pl)
{
    cuda_product_release(pl->whole.product);
    cuda_product_release(pl->rest.product);
    pl->whole.product = pl->rest.product = nullptr;
}
} // namespace

keel_status conv_products_create(const keel_prepare *p, const conv_graph *x, bool bias,
                                 conv_products **out, int64_t *scratch)
{
    const cuda_geometry *g = x->g;
    int64_t windows = 0, own = 0;
    if (x->type != KEEL_FLOAT32 || x->float32 == KEEL_FLOAT32_FAST || g->groups != 1)
        return KEEL_EUNSUP;
    conv_products *pl = static_cast<conv_products *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    pl->direction = x->direction;
    pl->at = args_of(g);
    pl->taps_c = pl->at.taps * g->c;
    pl->x_row = g->c, pl->y_row = g->k;
    for (int d = 0; d < g->dims; d++) pl->x_row *= g->x[d], pl->y_row *= g->y[d];
    pl->biased = bias && x->direction == CONV_FORWARD;
    keel_status s = divide(pl, x, &windows);
    if (s >= 0) s = prepare_pieces(p, pl, x, &own);
    if (s == KEEL_EUNSUP && pl->biased) { /* then the bias is there before */
        forget(pl);
        pl->biased = false;
        s = prepare_pieces(p, pl, x, &own);
    }
    if (s < 0) {
        conv_products_destroy(pl);
        return s;
    }
    pl->windows_at = own;
    *scratch = own + windows;
    *out = pl;
    return KEEL_OK;
}

void conv_products_destroy(conv_products *pl)
{
    if (!pl) return;
    forget(pl);
    keel_free(pl);
}

bool conv_products_fills(const conv_products *pl)
{
    return !pl->biased && pl->direction == CONV_FORWARD;
}

/* ---- run --------------------------------------------------------------------------------------
 */

namespace
{
struct run_args {
    const keel_call *c;
    const conv_products *pl;
    const float *x, *w, *y, *bias;
    bool adds;
};

float *windows_of(const run_args &r)
{
    return reinterpret_cast<float *>(static_cast<char *>(r.c->scratch) + r.pl->windows_at);
}

/* The windows of some rows of x. */
const float *fill_windows(const run_args &r, const float *x, int64_t rows)
{
    const window_args &a = r.pl->at;
    float *to = windows_of(r);
    const int64_t places = rows * a.y[0] * a.y[1] * a.y[2], threads = places * (a.c / a.per);
    if (a.per == 1 && a.dilation[2] == 1) {
        const int64_t elements = places * a.taps * a.c;
        cuda_launch(r.c, lines_kernel, cuda_blocks(elements), CUDA_THREADS, 0, to, x, a,
                    (int)elements);
        return to;
    }
    cuda_launch(r.c, a.per == 4 ? windows_kernel<4> : windows_kernel<1>, cuda_blocks(threads),
                CUDA_THREADS, 0, to, x, a, (int)threads);
    return to;
}

void share(const run_args &r, float *x, int64_t rows)
{
    const window_args &a = r.pl->at;
    const int64_t threads = rows * r.pl->x_row / a.per;
    cuda_launch(r.c, a.per == 4 ? shares_kernel<4> : shares_kernel<1>, cuda_blocks(threads),
                CUDA_THREADS, 0, x, windows_of(r), r.bias, a, (int)threads, r.adds);
}

bool multiply(const run_args &r, const piece *of, const float *a, const float *b, const float *to,
              bool adds)
{
    return cuda_product_run(r.c, of->product, a, b, r.pl->biased ? r.bias : nullptr,
                            const_cast<float *>(to), adds, r.c->scratch);
}

/* Some rows, from `row` on. */
bool run_piece(const run_args &r, const piece *of, int64_t row)
{
    const conv_products *pl = r.pl;
    const float *x = r.x + row * pl->x_row, *y = r.y + row * pl->y_row;
    switch (pl->direction) {
    case CONV_FORWARD:
        return multiply(r, of, fill_windows(r, x, of->rows), r.w, y, r.adds);
    case CONV_FILTER:
        return multiply(r, of, fill_windows(r, x, of->rows), y, r.w, r.adds || row > 0);
    default:
        if (!multiply(r, of, y, r.w, windows_of(r), false)) return false;
        share(r, const_cast<float *>(x), of->rows);
        return true;
    }
}
} // namespace

void conv_products_run(const keel_call *c, const conv_products *pl, const float *x, const float *w,
                       const float *y, const float *bias, bool adds)
{
    const run_args r = { c, pl, x, w, y, bias, adds };
    int64_t row = 0;
    for (int64_t i = 0; i < pl->whole.count; i++, row += pl->whole.rows)
        if (!run_piece(r, &pl->whole, row)) return;
    if (pl->rest.count) run_piece(r, &pl->rest, row);
}
