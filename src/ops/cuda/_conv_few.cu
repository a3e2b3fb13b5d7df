/* See _conv_few.h. A warp gathers 16 windows at a time: a lane has the same numbers of each, so it
 * knows their places in an image once. */
#include "ops/cuda/_conv_few.h"
#include "device/cuda/tensor_cores.h"
#include "ops/cuda/_library.h"

namespace
{
const int WARPS = 4, THREADS = WARPS * GPU_WARP, PLACES = 16; /* of a warp */
const int COLUMNS = 64, EIGHTS = COLUMNS / 8;                 /* outputs of a block */
const int TURNS_MOST = 5; /* numbers of a window that a lane has */
const int64_t CHANNELS_MOST = 4, DIM_MOST = 1 << 20;
/* So many blocks run at the same time, with a shared memory for lines of 5 turns, and with the
 * registers for their sums. */
const int64_t BLOCKS_MOST = 5 * 132, PIECES_MOST = 3 * 132;
const int NOWHERE = -(1 << 29);

/* Numbers from one line to the next in shared memory: eight lines that are read together meet no
 * bank twice. */
template <int NUMBERS> constexpr int PITCH = NUMBERS + 8;

/* One dim of images, windows and places. */
struct few_dim {
    int in, out, stride, dilation, pad, size;
};

struct few_windows {
    few_dim h, w;
    int c, k;  /* channels, and outputs */
    int count; /* numbers of a window */
    int64_t places;
    bool wide; /* packs of outputs may be loaded and stored */
};

__device__ __forceinline__ int lane_now()
{
    return (int)threadIdx.x % GPU_WARP;
}

__device__ __forceinline__ int warp_now()
{
    return (int)threadIdx.x / GPU_WARP;
}

/* ---- windows ----------------------------------------------------------------------------------
 */

/* Where a lane's numbers lie, from the first of a window on. */
template <int TURNS> struct lane_taps {
    int h[TURNS], w[TURNS], at[TURNS];

    __device__ __forceinline__ explicit lane_taps(const few_windows &s)
    {
        UNROLL
        for (int t = 0; t < TURNS; t++) {
            const int i = lane_now() + GPU_WARP * t, tap = i / s.c, line = tap / s.w.size;
            h[t] = i < s.count ? line * s.h.dilation : NOWHERE;
            w[t] = (tap - line * s.w.size) * s.w.dilation;
            at[t] = i < s.count ? (line * s.h.dilation * s.w.in + w[t]) * s.c + i - tap * s.c : 0;
        }
    }
};

/* The first pixel of a window; none: h is NOWHERE. */
struct window_at {
    int h, w;
    int64_t pixel;
};

__device__ __forceinline__ window_at window_of(const few_windows &s, int64_t place, int64_t end)
{
    int64_t row = place;
    window_at at;
    at.w = (int)take(&row, s.w.out) * s.w.stride - s.w.pad;
    at.h = (int)take(&row, s.h.out) * s.h.stride - s.h.pad;
    at.pixel = (row * s.h.in + at.h) * s.w.in + at.w;
    if (place >= end) at.h = NOWHERE;
    return at;
}

/* Windows [first, first + PLACES) of those before `end`, as lines of 32 TURNS numbers. All lanes of
 * a warp call it; nobody else reads or writes the lines. */
template <int TURNS, class T>
__device__ __forceinline__ void gather(T *lines, int apart, const T *x, const few_windows &s,
                                       const lane_taps<TURNS> &taps, int64_t first, int64_t end)
{
    const int TOGETHER = 4; /* windows whose loads are under way together */
    const window_at mine = window_of(s, first + lane_now() % PLACES, end);
    UNROLL_1
    for (int p = 0; p < PLACES; p += TOGETHER) {
        T v[TOGETHER][TURNS];
        UNROLL
        for (int u = 0; u < TOGETHER; u++) {
            const int h = __shfl_sync(GPU_ALL, mine.h, p + u);
            const int w = __shfl_sync(GPU_ALL, mine.w, p + u);
            const T *from = x + __shfl_sync(GPU_ALL, mine.pixel, p + u) * s.c;
            UNROLL
            for (int t = 0; t < TURNS; t++) {
                const bool inside = (unsigned)(h + taps.h[t]) < (unsigned)s.h.in &&
                                    (unsigned)(w + taps.w[t]) < (unsigned)s.w.in;
                v[u][t] = inside ? from[taps.at[t]] : T();
            }
        }
        UNROLL
        for (int u = 0; u < TOGETHER; u++) {
            UNROLL
            for (int t = 0; t < TURNS; t++)
                lines[(p + u) * apart + lane_now() + GPU_WARP * t] = v[u][t];
        }
    }
}

/* ---- forward ----------------------------------------------------------------------------------
 */

typedef pack<unsigned, 4> words;

/* From a warp's line to the next: of a window's numbers, then of outputs. */
template <int TURNS>
constexpr int LINE = PITCH<(GPU_WARP * TURNS < COLUMNS ? COLUMNS : GPU_WARP * TURNS)>;

template <int TURNS>
constexpr int FORWARD_ROOM = GPU_WARP *TURNS *PITCH<COLUMNS> + WARPS *PLACES *LINE<TURNS>;

/* The filter's lines, of the block's outputs; what there is not is 0. */
template <class T>
__device__ __forceinline__ void load_filter(T *to, const float *from, const few_windows &s,
                                            int lines, int first)
{
    for (int i = (int)threadIdx.x; i < lines * COLUMNS; i += THREADS) {
        const int line = i / COLUMNS, k = i % COLUMNS;
        const bool there = line < s.count && first + k < s.k;
        to[line * PITCH<COLUMNS> + k] =
            to_value<T>(there ? from[(int64_t)line * s.k + first + k] : 0);
    }
}

/* n outputs of each of the warp's places, from their lines. */
template <class T>
__device__ __forceinline__ void put_lines(T *y, const T *lines, int apart, const few_windows &s,
                                          int64_t first, int n)
{
    const int each = s.wide ? 8 : 1, across = n / each;
    for (int i = lane_now(); i < PLACES * across; i += GPU_WARP) {
        const int p = i / across, k = (i - p * across) * each;
        T *to = y + (first + p) * s.k + k;
        if (first + p >= s.places) continue;
        if (s.wide)
            *reinterpret_cast<words *>(to) =
                *reinterpret_cast<const words *>(lines + p * apart + k);
        else
            *to = lines[p * apart + k];
    }
}

template <int TURNS, class T>
__global__ void __launch_bounds__(THREADS, 1)
    forward_kernel(T *y, const T *x, const float *filter, const float *bias, const few_windows s)
{
    SHARED_DYN(T, room);
    SHARED(float, more, COLUMNS);
    const int first = (int)blockIdx.y * COLUMNS, n = s.k - first < COLUMNS ? s.k - first : COLUMNS;
    const int lane = lane_now(), g = lane / 4, c = lane % 4 * 2, apart = LINE<TURNS>;
    T *lines = room + GPU_WARP * TURNS * PITCH<COLUMNS> + warp_now() * PLACES * apart;
    const T *left = lines + lane % 16 * apart + lane / 16 * 8;
    const T *right = room + lane % 16 * PITCH<COLUMNS> + lane / 16 * 8;
    const lane_taps<TURNS> taps(s);
    load_filter(room, filter, s, GPU_WARP * TURNS, first);
    if ((int)threadIdx.x < COLUMNS)
        more[threadIdx.x] = bias && (int)threadIdx.x < n ? bias[first + threadIdx.x] : 0;
    __syncthreads();
    const int64_t step = (int64_t)gridDim.x * WARPS * PLACES;
    for (int64_t p = ((int64_t)blockIdx.x * WARPS + warp_now()) * PLACES; p < s.places; p += step) {
        float sum[EIGHTS][4] = {};
        gather(lines, apart, x, s, taps, p, s.places);
        __syncwarp();
        UNROLL
        for (int k = 0; k < 2 * TURNS; k++) {
            unsigned a[4], b[4];
            load_matrices(a, left + 16 * k);
            UNROLL
            for (int i = 0; i < EIGHTS / 2; i++) {
                if (16 * i >= n) break;
                load_transposed(b, right + 16 * k * PITCH<COLUMNS> + 16 * i);
                add_product<T>(sum[2 * i], a, b[0], b[1]);
                add_product<T>(sum[2 * i + 1], a, b[2], b[3]);
            }
        }
        __syncwarp(); /* the windows have been read */
        UNROLL
        for (int i = 0; i < EIGHTS; i++) {
            const int k = 8 * i + c;
            UNROLL
            for (int e = 0; e < 2; e++) {
                const float out[2] = { sum[i][2 * e] + more[k], sum[i][2 * e + 1] + more[k + 1] };
                store_pack<2>(lines + (g + 8 * e) * apart + k, out);
            }
        }
        __syncwarp();
        put_lines(y + first, lines, apart, s, p, n);
        __syncwarp(); /* the next windows come */
    }
}

/* ---- the filter's gradient --------------------------------------------------------------------
 */

const int TOGETHER = WARPS * PLACES; /* places of a block at a time */

template <int TURNS>
constexpr int WEIGHTS_ROOM = TOGETHER *(PITCH<GPU_WARP * TURNS> + PITCH<COLUMNS>);

/* Gradients of the block's outputs at its places; what there is not is 0. */
template <class T>
__device__ __forceinline__ void load_gradients(T *to, const T *dy, const few_windows &s,
                                               int64_t place, int64_t end, int n)
{
    const int each = s.wide ? 8 : 1, across = COLUMNS / each;
    for (int i = (int)threadIdx.x; i < TOGETHER * across; i += THREADS) {
        const int p = i / across, k = i % across * each;
        const bool there = place + p < end && k < n;
        const T *from = dy + (place + p) * s.k + k;
        if (s.wide)
            *reinterpret_cast<words *>(to + p * PITCH<COLUMNS> + k) =
                there ? *reinterpret_cast<const words *>(from) : words();
        else
            to[p * PITCH<COLUMNS> + k] = there ? *from : T();
    }
}

/* to: [pieces, taps c, k], of pieces of `each` places. A warp has 16 outputs and all lines. */
template <int TURNS, class T>
__global__ void __launch_bounds__(THREADS, 1)
    weights_kernel(double *to, const T *x, const T *dy, const few_windows s, int64_t each)
{
    SHARED_DYN(T, room);
    const int APART = PITCH<GPU_WARP * TURNS>;
    const int first = (int)blockIdx.y * COLUMNS, n = s.k - first < COLUMNS ? s.k - first : COLUMNS;
    const int lane = lane_now(), mine = 16 * warp_now();
    T *lines = room, *gradients = room + TOGETHER * APART;
    const T *left = lines + (lane % 8 + lane / 16 * 8) * APART + lane / 8 % 2 * 8;
    const T *right = gradients + lane % 16 * PITCH<COLUMNS> + lane / 16 * 8 + mine;
    const lane_taps<TURNS> taps(s);
    const int64_t begin = blockIdx.x * each;
    const int64_t end = begin + each < s.places ? begin + each : s.places;
    float sum[2 * TURNS][2][4] = {};
    for (int64_t p = begin; p < end; p += TOGETHER) {
        __syncthreads(); /* those before have been read */
        gather(lines + mine * APART, APART, x, s, taps, p + mine, end);
        load_gradients(gradients, dy + first, s, p, end, n);
        __syncthreads();
        UNROLL_1
        for (int q = 0; q < TOGETHER && mine < n; q += 16) {
            unsigned a[4], b[4];
            load_transposed(b, right + q * PITCH<COLUMNS>);
            UNROLL
            for (int m = 0; m < 2 * TURNS; m++) {
                load_transposed(a, left + q * APART + 16 * m);
                add_product<T>(sum[m][0], a, b[0], b[1]);
                add_product<T>(sum[m][1], a, b[2], b[3]);
            }
        }
    }
    UNROLL
    for (int m = 0; m < 2 * TURNS; m++) {
        UNROLL
        for (int i = 0; i < 8; i++) { /* of two tiles, each of two lines and two outputs */
            const int line = 16 * m + lane / 4 + i / 2 % 2 * 8;
            const int k = mine + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (line < s.count && k < n)
                to[(blockIdx.x * (int64_t)s.count + line) * s.k + first + k] =
                    (double)sum[m][i / 4][i % 4];
        }
    }
}

/* ---- calls ------------------------------------------------------------------------------------
 */

few_dim dim_of(const cuda_geometry *g, int d)
{
    return { (int)g->x[d],        (int)g->y[d],      (int)g->stride[d],
             (int)g->dilation[d], (int)g->before[d], (int)g->size[d] };
}

few_windows windows_of(const cuda_geometry *g, int64_t rows)
{
    few_windows s = {};
    s.h = dim_of(g, 0);
    s.w = dim_of(g, 1);
    s.c = (int)g->c;
    s.k = (int)g->k;
    s.count = (int)(g->size[0] * g->size[1] * g->c);
    s.places = rows * g->y[0] * g->y[1];
    return s;
}

int64_t places_each(const few_windows &s)
{
    const int64_t each = (s.places + PIECES_MOST - 1) / PIECES_MOST;
    return each < 4 * TOGETHER ? 4 * TOGETHER : (each + TOGETHER - 1) / TOGETHER * TOGETHER;
}

int64_t pieces_of(const few_windows &s)
{
    return (s.places + places_each(s) - 1) / places_each(s);
}

unsigned chunks_of(const few_windows &s)
{
    return (unsigned)((s.k + COLUMNS - 1) / COLUMNS);
}

/* Ints are enough for a row, and for what is outside of it. */
bool fits_ints(const cuda_geometry *g)
{
    bool fits = g->k <= DIM_MOST;
    for (int d = 0; d < 2; d++)
        fits = fits && g->x[d] <= DIM_MOST && g->y[d] <= DIM_MOST && g->stride[d] <= DIM_MOST &&
               g->y[d] * g->stride[d] <= DIM_MOST * 4 && g->before[d] <= DIM_MOST &&
               g->size[d] * g->dilation[d] <= DIM_MOST;
    return fits && (g->size[0] * g->dilation[0] + 1) * g->x[1] <= DIM_MOST * 64;
}

/* Calls f.run with the turns of a window. */
template <class F> void with_turns(const few_windows &s, F f)
{
    switch ((s.count + GPU_WARP - 1) / GPU_WARP) {
    case 1:
        return f.template run<1>();
    case 2:
        return f.template run<2>();
    case 3:
        return f.template run<3>();
    case 4:
        return f.template run<4>();
    default:
        return f.template run<TURNS_MOST>();
    }
}

template <class T> struct forward_call {
    const keel_call *c;
    few_windows s;

    template <int TURNS> void run() const
    {
        const float *const *w = reinterpret_cast<const float *const *>(c->weight);
        const int64_t blocks = (s.places + 2 * TOGETHER - 1) / (2 * TOGETHER);
        cuda_launch(c, forward_kernel<TURNS, T>,
                    dim3(gpu_blocks(blocks, BLOCKS_MOST), chunks_of(s)), THREADS,
                    FORWARD_ROOM<TURNS> * sizeof(T), cuda_out<T>(c), cuda_in<T>(c, 0), w[0],
                    c->node->n_weight > 1 ? w[1] : nullptr, s);
    }
};

template <class T> struct weights_call {
    const keel_call *c;
    few_windows s;

    template <int TURNS> void run() const
    {
        cuda_launch(c, weights_kernel<TURNS, T>, dim3((unsigned)pieces_of(s), chunks_of(s)),
                    THREADS, WEIGHTS_ROOM<TURNS> * sizeof(T), static_cast<double *>(c->scratch),
                    cuda_in<T>(c, 0), cuda_out_grad<T>(c), s, places_each(s));
    }
};

template <class T> void forward(const keel_call *c, const cuda_geometry *g)
{
    few_windows s = windows_of(g, c->rows);
    s.wide = s.k % 8 == 0 && fits_pack<8>(cuda_out<T>(c));
    with_turns(s, forward_call<T>{ c, s });
}

template <class T> void weights(const keel_call *c, const cuda_geometry *g)
{
    few_windows s = windows_of(g, c->rows);
    s.wide = s.k % 8 == 0 && fits_pack<8>(cuda_out_grad<T>(c));
    with_turns(s, weights_call<T>{ c, s });
}
} // namespace

keel_status conv_few_prepare(const conv_graph *x, int64_t *scratch)
{
    const cuda_geometry *g = x->g;
    if (x->direction == CONV_DATA || !keel_dtype_is_narrow(x->type) || g->transposed ||
        g->dims != 2 || g->groups != 1 || g->c > CHANNELS_MOST || !fits_ints(g) ||
        g->size[0] > GPU_WARP * TURNS_MOST || g->size[1] > GPU_WARP * TURNS_MOST ||
        g->size[0] * g->size[1] * g->c > GPU_WARP * TURNS_MOST)
        return KEEL_EUNSUP;
    const few_windows s = windows_of(g, x->rows);
    *scratch = x->direction == CONV_FILTER
                   ? cuda_piece(pieces_of(s) * s.count * s.k * (int64_t)sizeof(double))
                   : 0;
    return KEEL_OK;
}

void conv_few_forward(const keel_call *c, const cuda_geometry *g)
{
    c->node->held == KEEL_FLOAT16 ? forward<f16>(c, g) : forward<bf16>(c, g);
}

void conv_few_weights(const keel_call *c, const cuda_geometry *g, float *dw, bool adds)
{
    const few_windows s = windows_of(g, c->rows);
    c->node->held == KEEL_FLOAT16 ? weights<f16>(c, g) : weights<bf16>(c, g);
    column_ends<1>(c, { { dw } }, static_cast<double *>(c->scratch), (int64_t)s.count * s.k,
                   pieces_of(s), adds);
}
