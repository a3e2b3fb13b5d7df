/* See _depthwise.h. Channels are the fastest axis: a thread has four of them, and its neighbours
 * have the next ones.
 *
 * With windows 3, 5 or 7 wide, strides of 1 or 2 and no dilation, a thread has a tile of TILE
 * neighbouring places besides: what several windows read of a line is loaded once, and a line of
 * taps stays in registers. Tiles of the way back begin where a window does, so that with strides of
 * 2 each pixel knows its taps when this is compiled. Other windows, and several filters of one
 * channel, have a thread for each place.
 *
 * The gradient of the kernel is a sum over all places. A block has 32 channels, a line of taps and
 * a piece of the tiles; its threads add up to 256 products in float32, and the rest is added as
 * doubles: over the threads of a block, and then over the pieces, in their order. How many pieces
 * there are depends only on the shapes of the call. */
#include "ops/cuda/_depthwise.h"
#include "ops/cuda/_packs.h"

namespace
{
const int TILE = 4;                          /* neighbouring places of a thread */
const int LANES = 8;                         /* threads of a block that share 32 channels */
const int TAP_LINES = CUDA_THREADS / LANES;  /* threads that share the tiles of a piece */
const int64_t TAP_TILES = TAP_LINES * 64;    /* of a piece, at most: see above */
const int64_t TAP_TILES_FEW = TAP_LINES * 2; /* with fewer, a piece is not worth its sum */
const int64_t TAP_BLOCKS = CUDA_BLOCKS / 4;  /* are enough to keep the largest GPU busy */

struct window_dim {
    int64_t in, out, size, stride, dilation, pad;

    /* The pixel that tap k of the window at output o reads; below 0: none. */
    __device__ __forceinline__ int64_t pixel(int64_t o, int64_t k) const
    {
        const int64_t i = o * stride + k * dilation - pad;
        return i < in ? i : -1;
    }
    /* The output whose window reads pixel i with tap k; below 0: none. */
    __device__ __forceinline__ int64_t output(int64_t i, int64_t k) const
    {
        int64_t at = i + pad - k * dilation;
        if (at < 0 || (stride > 1 && take(&at, stride))) return -1;
        return at < out ? at : -1;
    }
};

struct window {
    window_dim h, w;
    int64_t rows, c, k, m; /* channels, filters, filters of a channel */
    bool wide;
};

/* Four neighbouring channels, of which n exist; WIDE: all do, and are aligned. */
template <bool WIDE, class T>
__device__ __forceinline__ void load_channels(float v[4], const T *from, int64_t n)
{
    if constexpr (WIDE)
        load4(v, from);
    else
        load_some(v, from, n, false);
}

template <bool WIDE, class T>
__device__ __forceinline__ void load_if(bool is_there, float v[4], const T *from, int64_t n)
{
    for (int e = 0; e < 4; e++) v[e] = 0;
    if (is_there) load_channels<WIDE>(v, from, n);
}

template <bool WIDE, class T>
__device__ __forceinline__ void store_channels(T *to, const float v[4], int64_t n)
{
    if constexpr (WIDE)
        store4(to, v);
    else
        store_some(to, v, n, false);
}

/* N neighbouring places from number `first` on, which lie `step` apart and of which there are
 * `end`; the others are 0. All are on their way before one is used. */
template <int N, bool WIDE, class T>
__device__ __forceinline__ void load_line(pack<T, 4> v[N], const T *from, int64_t first,
                                          int64_t end, int64_t step, int64_t n)
{
    UNROLL
    for (int m = 0; m < N; m++) {
        v[m] = {};
        if (first + m >= 0 && first + m < end)
            v[m] = load_place<WIDE, 4>(from + (first + m) * step, n);
    }
}

/* sum += a b */
__device__ __forceinline__ void add_products(float sum[4], const float a[4], const float b[4])
{
    UNROLL
    for (int e = 0; e < 4; e++) sum[e] = fmaf(a[e], b[e], sum[e]);
}

/* ---- tiles ------------------------------------------------------------------------------------
 */

/* How threads share an array [rows, height, tiles, channels]. Some neighbouring channels have
 * neighbouring places beside them, which read the same lines: they find them in the cache. */
struct tiling {
    int64_t height, tiles, lanes, chunks, all; /* lanes: threads of neighbouring channels */
};

tiling tiling_of(const window &s, int64_t channels, int64_t height, int64_t tiles)
{
    const int64_t groups = (channels + 3) / 4;
    tiling t = { height, tiles, groups, 1, s.rows * height * tiles * groups };
    for (int64_t lanes = LANES; t.chunks == 1 && lanes >= LANES / 2; lanes /= 2)
        if (groups % lanes == 0) t.lanes = lanes, t.chunks = groups / lanes;
    return t;
}

struct tile_place {
    int64_t row, h, tile, channel;

    __device__ __forceinline__ tile_place(const tiling &s, int64_t t)
    {
        const int64_t lane = take(&t, s.lanes);
        tile = take(&t, s.tiles);
        h = take(&t, s.height);
        channel = 4 * (take(&t, s.chunks) * s.lanes + lane);
        row = t;
    }
};

template <int KW, int S, bool WIDE, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_tiles(T *y, const T *x, const float *kernel, const float *bias, const window s,
                  const tiling by)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < by.all; t += step) {
        const tile_place at(by, t);
        const int64_t n = s.k - at.channel, w = TILE * at.tile, first = w * S - s.w.pad;
        float sum[TILE][4], taps[KW][4], v[4];
        for (int p = 0; p < TILE; p++) load_if<WIDE>(bias != nullptr, sum[p], bias + at.channel, n);
        for (int64_t i = 0; i < s.h.size; i++) {
            const int64_t h = s.h.pixel(at.h, i);
            if (h < 0) continue;
            const float *filter = kernel + i * KW * s.k + at.channel;
            const T *line = x + ((at.row * s.h.in + h) * s.w.in + first) * s.c + at.channel;
            for (int j = 0; j < KW; j++) load_channels<WIDE>(taps[j], filter + j * s.k, n);
            for (int m = 0; m < (TILE - 1) * S + KW; m++) {
                load_if<WIDE>(first + m >= 0 && first + m < s.w.in, v, line + m * s.c, n);
                for (int p = 0; p < TILE; p++)
                    if (m >= p * S && m - p * S < KW) add_products(sum[p], v, taps[m - p * S]);
            }
        }
        T *to = y + ((at.row * s.h.out + at.h) * s.w.out + w) * s.k + at.channel;
        for (int p = 0; p < TILE; p++)
            if (w + p < s.w.out) store_channels<WIDE>(to + p * s.k, sum[p], n);
    }
}

template <int KW, int S, bool WIDE, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_tiles(T *dx, const T *dy, const float *kernel, const window s, const tiling by,
                   bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < by.all; t += step) {
        const tile_place at(by, t);
        const int64_t n = s.k - at.channel;
        const int64_t w = TILE * at.tile - s.w.pad % S, first = (w + s.w.pad) / S; /* whole */
        float sum[TILE][4], taps[KW][4], v[4];
        for (int p = 0; p < TILE; p++)
            for (int e = 0; e < 4; e++) sum[p][e] = 0;
        for (int64_t i = 0; i < s.h.size; i++) {
            const int64_t h = s.h.output(at.h, i);
            if (h < 0) continue;
            const float *filter = kernel + i * KW * s.k + at.channel;
            const T *line = dy + ((at.row * s.h.out + h) * s.w.out + first) * s.k + at.channel;
            for (int j = 0; j < KW; j++) load_channels<WIDE>(taps[j], filter + j * s.k, n);
            for (int m = -(KW - 1) / S; m <= (TILE - 1) / S; m++) {
                load_if<WIDE>(first + m >= 0 && first + m < s.w.out, v, line + m * s.k, n);
                for (int p = 0; p < TILE; p++)
                    if (p >= S * m && p - S * m < KW) add_products(sum[p], v, taps[p - S * m]);
            }
        }
        T *to = dx + ((at.row * s.h.in + at.h) * s.w.in + w) * s.c + at.channel;
        for (int p = 0; p < TILE; p++) {
            if (w + p < 0 || w + p >= s.w.in) continue;
            load_if<WIDE>(adds, v, to + p * s.c, n);
            for (int e = 0; e < 4; e++) v[e] += sum[p][e];
            store_channels<WIDE>(to + p * s.c, v, n);
        }
    }
}

/* ---- any window -------------------------------------------------------------------------------
 */

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const float *kernel, const float *bias, const window s,
                   int64_t all)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, groups = (s.k + 3) / 4;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t q = 4 * take(&row, groups), n = s.k - q;
        const int64_t w = take(&row, s.w.out), h = take(&row, s.h.out);
        const T *image = x + row * s.h.in * s.w.in * s.c;
        float sum[4] = { 0, 0, 0, 0 }, p[4], by[4];
        if (bias) load_some(sum, bias + q, n, false);
        for (int64_t i = 0; i < s.h.size; i++)
            for (int64_t j = 0; j < s.w.size; j++) {
                const int64_t at_h = s.h.pixel(h, i), at_w = s.w.pixel(w, j);
                if (at_h < 0 || at_w < 0) continue;
                const T *at = image + (at_h * s.w.in + at_w) * s.c;
                if (s.m == 1)
                    load_some(p, at + q, n, s.wide);
                else
                    for (int e = 0; e < 4; e++) p[e] = e < n ? to_f(at[(q + e) / s.m]) : 0;
                load_some(by, kernel + (i * s.w.size + j) * s.k + q, n, false);
                add_products(sum, p, by);
            }
        store_some(y + ((row * s.h.out + h) * s.w.out + w) * s.k + q, sum, n, s.wide);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const float *kernel, const window s, int64_t all, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, groups = (s.c + 3) / 4;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t c = 4 * take(&row, groups), n = s.c - c;
        const int64_t w = take(&row, s.w.in), h = take(&row, s.h.in);
        const int64_t in = ((row * s.h.in + h) * s.w.in + w) * s.c + c;
        const T *image = dy + row * s.h.out * s.w.out * s.k;
        float sum[4] = { 0, 0, 0, 0 }, g[4], by[4], old[4];
        for (int64_t i = 0; i < s.h.size; i++)
            for (int64_t j = 0; j < s.w.size; j++) {
                const int64_t at_h = s.h.output(h, i), at_w = s.w.output(w, j);
                if (at_h < 0 || at_w < 0) continue;
                const T *at = image + (at_h * s.w.out + at_w) * s.k;
                const float *filter = kernel + (i * s.w.size + j) * s.k;
                if (s.m == 1) {
                    load_some(g, at + c, n, s.wide);
                    load_some(by, filter + c, n, false);
                    add_products(sum, g, by);
                    continue;
                }
                for (int e = 0; e < 4; e++)
                    for (int64_t q = (c + e) * s.m; e < n && q < (c + e + 1) * s.m; q++)
                        sum[e] = fmaf(to_f(at[q]), filter[q], sum[e]);
            }
        if (adds) load_some(old, dx + in, n, s.wide);
        for (int e = 0; adds && e < 4; e++) sum[e] += old[e];
        store_some(dx + in, sum, n, s.wide);
    }
}

/* ---- the gradient of the kernel ---------------------------------------------------------------
 */

/* How blocks share the sums. A part is a line of taps, or one tap where windows are any. */
struct tap_sums {
    int64_t tiles, all, parts, chunks, pieces; /* tiles: of a line; all: of the call */
};

/* kw: taps of a part */
tap_sums tap_sums_of(const window &s, int64_t kw)
{
    tap_sums f = {};
    f.tiles = (s.w.out + TILE - 1) / TILE;
    f.all = s.rows * s.h.out * f.tiles;
    f.parts = s.h.size * (s.w.size / kw);
    f.chunks = (s.k + 4 * LANES - 1) / (4 * LANES);
    const int64_t enough = (TAP_BLOCKS + f.parts * f.chunks - 1) / (f.parts * f.chunks);
    const int64_t few = (f.all + TAP_TILES_FEW - 1) / TAP_TILES_FEW;
    const int64_t least = (f.all + TAP_TILES - 1) / TAP_TILES;
    f.pieces = few < enough ? few : enough > least ? enough : least;
    return f;
}

/* sum += x dy over a tile of outputs, whose windows begin at pixel `first` of a line of x. */
template <int KW, int S, bool WIDE, class T>
__device__ __forceinline__ void add_tile(float sum[KW][4], const T *line,
                                         const pack<T, 4> given[TILE], const window &s,
                                         int64_t first, int64_t n, int64_t q)
{
    float v[4], g[TILE][4];
    UNROLL
    for (int p = 0; p < TILE; p++) unpack<4>(g[p], given[p]);
    if constexpr (S > 0 && KW < 5) {
        UNROLL
        for (int m = 0; m < (TILE - 1) * S + KW; m++) {
            load_if<WIDE>(first + m >= 0 && first + m < s.w.in, v, line + (first + m) * s.c + q, n);
            UNROLL
            for (int p = 0; p < TILE; p++)
                if (m >= p * S && m - p * S < KW) add_products(sum[m - p * S], v, g[p]);
        }
    } else if constexpr (S > 0) { /* registers for a whole line are worth a smaller grid */
        const int LINE = (TILE - 1) * S + KW;
        pack<T, 4> x[LINE];
        load_line<LINE, WIDE>(x, line + q, first, s.w.in, s.c, n);
        UNROLL
        for (int m = 0; m < LINE; m++) {
            unpack<4>(v, x[m]);
            UNROLL
            for (int p = 0; p < TILE; p++)
                if (m >= p * S && m - p * S < KW) add_products(sum[m - p * S], v, g[p]);
        }
    } else {
        for (int p = 0; p < TILE; p++) {
            const int64_t w = first + p * s.w.stride;
            if (w < 0 || w >= s.w.in) continue;
            if (s.m == 1)
                load_channels<WIDE>(v, line + w * s.c + q, n);
            else
                for (int e = 0; e < 4; e++) v[e] = e < n ? to_f(line[w * s.c + (q + e) / s.m]) : 0;
            add_products(sum[0], v, g[p]);
        }
    }
}

template <int KW, int S, bool WIDE, class T>
__device__ __forceinline__ void add_tiles(float sum[KW][4], const T *x, const T *dy,
                                          const window &s, const tap_sums &f, int64_t piece,
                                          int64_t part, int64_t q)
{
    const int64_t end = (piece + 1) * f.all / f.pieces, n = s.k - q;
    int64_t i = part;
    const int64_t j = take(&i, s.w.size / KW);
    for (int64_t t = piece * f.all / f.pieces + threadIdx.x / LANES; n > 0 && t < end;
         t += TAP_LINES) {
        int64_t row = t;
        const int64_t w = TILE * take(&row, f.tiles), line = row, h = take(&row, s.h.out);
        const int64_t at_h = s.h.pixel(h, i);
        if (at_h < 0) continue;
        pack<T, 4> g[TILE];
        load_line<TILE, WIDE>(g, dy + line * s.w.out * s.k + q, w, s.w.out, s.k, n);
        add_tile<KW, S, WIDE>(sum, x + (row * s.h.in + at_h) * s.w.in * s.c, g, s,
                              w * s.w.stride + j * s.w.dilation - s.w.pad, n, q);
    }
}

/* to: [pieces, KH, KW, K] */
template <int KW, int S, bool WIDE, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    taps_kernel(double *to, const T *x, const T *dy, const window s, const tap_sums f)
{
    const int COLUMNS = KW * 4 * LANES, PITCH = COLUMNS + 1;
    SHARED(float, room, TAP_LINES *(KW * 4 * LANES + 1));
    const int lane = (int)threadIdx.x % LANES, line = (int)threadIdx.x / LANES;
    for (int64_t b = blockIdx.x; b < f.pieces * f.parts * f.chunks; b += gridDim.x) {
        int64_t piece = b;
        const int64_t part = take(&piece, f.parts), chunk = take(&piece, f.chunks);
        float sum[KW][4];
        for (int j = 0; j < KW; j++)
            for (int e = 0; e < 4; e++) sum[j][e] = 0;
        add_tiles<KW, S, WIDE>(sum, x, dy, s, f, piece, part, 4 * (chunk * LANES + lane));
        for (int j = 0; j < KW; j++)
            for (int e = 0; e < 4; e++)
                room[line * PITCH + j * 4 * LANES + 4 * lane + e] = sum[j][e];
        __syncthreads();
        const int column = (int)threadIdx.x, j = column / (4 * LANES);
        const int64_t q = chunk * 4 * LANES + column % (4 * LANES);
        double all = 0;
        if (column < COLUMNS && q < s.k) {
            for (int l = 0; l < TAP_LINES; l++) all += room[l * PITCH + column];
            to[((piece * f.parts + part) * KW + j) * s.k + q] = all;
        }
        __syncthreads(); /* room is used again */
    }
}

/* ---- calls ------------------------------------------------------------------------------------
 */

window window_of(const keel_node *node, int64_t rows)
{
    const keel_conv2d_args *a = static_cast<const keel_conv2d_args *>(node->args);
    const int64_t *in = node->in[0].shape.dim, *out = node->out[0].shape.dim;
    const int64_t *kernel = node->weight[0].shape.dim;
    window s = {};
    s.h = { in[0], out[0], kernel[0], a->strides[0], a->dilation[0], a->pad[0] };
    s.w = { in[1], out[1], kernel[1], a->strides[1], a->dilation[1], a->pad[2] };
    s.rows = rows;
    s.c = in[2];
    s.k = out[2];
    s.m = s.k / s.c;
    return s;
}

/* The width of windows that go by tiles; 1: any window. */
int tiled_width(const window &s)
{
    const bool tiled = s.m == 1 && s.w.dilation == 1 && s.w.stride <= 2 &&
                       (s.w.size == 3 || s.w.size == 5 || s.w.size == 7);
    return tiled ? (int)s.w.size : 1;
}

/* Calls f with the width and the stride of windows that go by tiles, or with 1 and 0. */
template <class F> void with_window(const window &s, F f)
{
    const bool twice = s.w.stride == 2;
    switch (tiled_width(s)) {
    case 3:
        return twice ? f.template run<3, 2>() : f.template run<3, 1>();
    case 5:
        return twice ? f.template run<5, 2>() : f.template run<5, 1>();
    case 7:
        return twice ? f.template run<7, 2>() : f.template run<7, 1>();
    default:
        return f.template run<1, 0>();
    }
}

const float *kernel_of(const keel_call *c)
{
    return static_cast<const float *>(c->weight[0]);
}

template <class T> struct forward_call {
    const keel_call *c;
    window s;
    T *y;
    const T *x;
    const float *bias;

    template <int KW, int S> void run() const
    {
        if constexpr (S == 0) {
            const int64_t all = s.rows * s.h.out * s.w.out * ((s.k + 3) / 4);
            cuda_launch(c, forward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, y, x, kernel_of(c),
                        bias, s, all);
        } else {
            const tiling by = tiling_of(s, s.k, s.h.out, (s.w.out + TILE - 1) / TILE);
            cuda_launch(c, s.wide ? forward_tiles<KW, S, true, T> : forward_tiles<KW, S, false, T>,
                        cuda_blocks(by.all), CUDA_THREADS, 0, y, x, kernel_of(c), bias, s, by);
        }
    }
};

template <class T> struct backward_call {
    const keel_call *c;
    window s;
    T *dx;
    const T *dy;

    template <int KW, int S> void run() const
    {
        const bool adds = c->in_adds[0];
        if constexpr (S == 0) {
            const int64_t all = s.rows * s.h.in * s.w.in * ((s.c + 3) / 4);
            cuda_launch(c, backward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, dx, dy,
                        kernel_of(c), s, all, adds);
        } else {
            const int64_t tiles = (s.w.pad % S + s.w.in + TILE - 1) / TILE;
            const tiling by = tiling_of(s, s.c, s.h.in, tiles);
            cuda_launch(c,
                        s.wide ? backward_tiles<KW, S, true, T> : backward_tiles<KW, S, false, T>,
                        cuda_blocks(by.all), CUDA_THREADS, 0, dx, dy, kernel_of(c), s, by, adds);
        }
    }
};

template <class T> struct taps_call {
    const keel_call *c;
    window s;
    const T *x, *dy;

    template <int KW, int S> void run() const
    {
        const tap_sums f = tap_sums_of(s, KW);
        cuda_launch(c, s.wide ? taps_kernel<KW, S, true, T> : taps_kernel<KW, S, false, T>,
                    cuda_turns(f.pieces * f.parts * f.chunks), CUDA_THREADS, 0,
                    static_cast<double *>(c->scratch), x, dy, s, f);
        column_ends<1>(c, { { static_cast<float *>(c->weight_grad[0]) } },
                       static_cast<double *>(c->scratch), s.h.size * s.w.size * s.k, f.pieces,
                       c->weight_adds);
    }
};

/* Whether all four of a thread's channels can be read at once. */
bool wide_channels(const window &s, const void *kernel, const void *bias)
{
    return s.k % 4 == 0 && s.c % 4 == 0 && wide4(static_cast<const float *>(kernel)) &&
           wide4(static_cast<const float *>(bias));
}

template <class T> void forward(const keel_call *c)
{
    const float *bias = c->node->n_weight > 1 ? static_cast<const float *>(c->weight[1]) : nullptr;
    forward_call<T> f = { c, window_of(c->node, c->rows), cuda_out<T>(c), cuda_in<T>(c, 0), bias };
    f.s.wide = wide_channels(f.s, c->weight[0], bias) && wide4(f.x) && wide4(f.y);
    with_window(f.s, f);
}

template <class T> void backward(const keel_call *c)
{
    backward_call<T> f = { c, window_of(c->node, c->rows), cuda_in_grad<T>(c, 0),
                           cuda_out_grad<T>(c) };
    f.s.wide = wide_channels(f.s, c->weight[0], nullptr) && wide4(f.dx) && wide4(f.dy);
    if (f.dx) with_window(f.s, f);
}

int64_t taps_scratch(const window &s)
{
    const int64_t n = s.h.size * s.w.size * s.k;
    return cuda_piece(tap_sums_of(s, tiled_width(s)).pieces * n * (int64_t)sizeof(double));
}

template <class T> void weights(const keel_call *c)
{
    taps_call<T> f = { c, window_of(c->node, c->rows), cuda_in<T>(c, 0), cuda_out_grad<T>(c) };
    f.s.wide = wide_channels(f.s, nullptr, nullptr) && wide4(f.x) && wide4(f.dy);
    if (c->weight_grad[0]) with_window(f.s, f);
    if (c->node->n_weight > 1 && c->weight_grad[1])
        places_sum(c, static_cast<float *>(c->weight_grad[1]), f.dy,
                   f.s.rows * f.s.h.out * f.s.w.out, f.s.k, c->weight_adds,
                   static_cast<char *>(c->scratch) + taps_scratch(f.s));
}
} // namespace

keel_status cuda_depthwise_prepare(keel_prepare *p)
{
    if (p->pass != KEEL_WEIGHTS) return cuda_prepare(p, 0);
    const window s = window_of(p->node, p->rows);
    const int64_t bias =
        p->node->n_weight > 1 ? cuda_places_scratch(s.rows * s.h.out * s.w.out, s.k) : 0;
    return cuda_prepare(p, taps_scratch(s) + bias);
}

#define BY_HELD(pass)                                                                              \
    c->node->held == KEEL_FLOAT16    ? pass<f16>(c)                                                \
    : c->node->held == KEEL_BFLOAT16 ? pass<bf16>(c)                                               \
                                     : pass<float>(c)

void cuda_depthwise_forward(const keel_call *c)
{
    BY_HELD(forward);
}

void cuda_depthwise_backward(const keel_call *c)
{
    BY_HELD(backward);
}

void cuda_depthwise_weights(const keel_call *c)
{
    BY_HELD(weights);
}
