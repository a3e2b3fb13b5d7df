/* Attention on tensor cores: tiles of lines in shared memory as their values are stored, products
 * with them, and what is known of scores that lie as sums of device/cuda/tensor_cores.h. For
 * _attention_tensor.h, which says who has what.
 *
 * A lane's sums of a warp's 16 own lines and a tile of the others are x[n][4]: of own lines g and g
 * + 8 and others 8 n + c and 8 n + c + 1, where g = lane / 4 and c = 2 (lane % 4). */
#ifndef KEEL_OPS_CUDA_ATTENTION_TENSOR_TILES_H
#define KEEL_OPS_CUDA_ATTENTION_TENSOR_TILES_H
#include "device/cuda/tensor_cores.h"
#include "ops/cuda/_attention_tiles.h"
#include "ops/cuda/_packs.h"

static const int TENSOR_THREADS = 4 * GPU_WARP, WARP_OWN = 16, BLOCK_OWN = 4 * WARP_OWN;
static const int OTHERS = 32, EIGHTS = OTHERS / 8; /* lines of a tile */

/* Numbers from one line of a tile to the next: eight lines that are read together meet no bank
 * twice. */
template <int W> constexpr int PITCH = W + 8;

/* Lines of a head, numbers from one to the next, the window: ints here; what has more goes another
 * way. */
static const int64_t TENSOR_MOST = 1 << 30;

static __device__ __forceinline__ int lane_now()
{
    return (int)threadIdx.x % GPU_WARP;
}

static __device__ __forceinline__ int own_line() /* the first of the two */
{
    return (int)threadIdx.x / GPU_WARP * WARP_OWN + lane_now() / 4;
}

static __device__ __forceinline__ int pair_place() /* c */
{
    return lane_now() % 4 * 2;
}

/* ---- tiles ------------------------------------------------------------------------------------
 */

/* Lines of n numbers, `apart` each, of which `count` exist. `wide`: packs of 16 bytes may be loaded
 * and stored. */
template <class T> struct line_array {
    const T *at;
    int apart, count, n;
    bool wide;

    __device__ __forceinline__ void skip(int lines)
    {
        at += (int64_t)lines * apart;
        count -= lines;
    }
};

template <class T>
static __device__ __forceinline__ line_array<T> queries_at(const attention<T> &a, int64_t at,
                                                           int count)
{
    return { a.q + at * a.d, (int)(a.heads * a.d), count, (int)a.d, a.wide_d };
}

template <class T>
static __device__ __forceinline__ line_array<T> keys_at(const attention<T> &a, int64_t at,
                                                        int count)
{
    return { a.k + at * a.d, (int)(a.shared * a.d), count, (int)a.d, a.wide_d };
}

template <class T>
static __device__ __forceinline__ line_array<T> values_at(const attention<T> &a, int64_t at,
                                                          int count)
{
    return { a.v + at * a.e, (int)(a.shared * a.e), count, (int)a.e, a.wide_e };
}

/* As queries, but of a value's numbers: gradients of the output. */
template <class T>
static __device__ __forceinline__ line_array<T> outputs_at(const attention<T> &a, const T *from,
                                                           int64_t at, int count)
{
    return { from + at * a.e, (int)(a.heads * a.e), count, (int)a.e, a.wide_e };
}

/* A thread's part of L such lines, which become a tile of lines of W numbers; what does not exist
 * is 0. Between the two calls they are on their way from memory, if they are wide. */
template <int W, int L, class T> struct lines_ahead {
    static const int ACROSS = W / 8, DOWN = TENSOR_THREADS / ACROSS, TURNS = L / DOWN;
    static_assert(L % DOWN == 0, "no line is left over");
    typedef pack<unsigned, 4> words;
    words part[TURNS];

    __device__ __forceinline__ void load(const line_array<T> &from)
    {
        const int c = (int)threadIdx.x % ACROSS * 8, first = (int)threadIdx.x / ACROSS;
        const int lines = !from.wide || c >= from.n ? 0 : from.count < L ? from.count : L;
        const T *at = from.at + (int64_t)first * from.apart + c;
        UNROLL
        for (int u = 0; u < TURNS; u++) {
            part[u] = words();
            if (first + u * DOWN < lines)
                part[u] = load_pack<4>(
                    reinterpret_cast<const unsigned *>(at + (int64_t)(u * DOWN) * from.apart));
        }
    }
    __device__ __forceinline__ void store(T *tile, const line_array<T> &from) const
    {
        const int c = (int)threadIdx.x % ACROSS * 8, first = (int)threadIdx.x / ACROSS;
        UNROLL
        for (int u = 0; u < TURNS; u++) {
            T *to = tile + (first + u * DOWN) * PITCH<W> + c;
            gpu_aligned(to, sizeof(words));
            *reinterpret_cast<words *>(to) = part[u];
        }
        if (from.wide) return;
        UNROLL_1
        for (int i = 0; i < 8 * TURNS; i++) {
            const int line = first + i / 8 * DOWN, k = c + i % 8;
            if (line < from.count && k < from.n)
                tile[line * PITCH<W> + k] = from.at[(int64_t)line * from.apart + k];
        }
    }
};

/* The warp's own lines of a tile of BLOCK_OWN, as left matrices: HELD in registers, or read from
 * the tile, which then is nobody else's, each time. */
template <int W, bool HELD, class T> struct own_lines {
    unsigned held[HELD ? W / 16 : 1][4];
    const T *at;

    /* The tile is one that nobody reads any more; others may be stored there behind the next
     * barrier, if the lines are held. */
    __device__ __forceinline__ void load(T *tile, const line_array<T> &from)
    {
        lines_ahead<W, BLOCK_OWN, T> lines;
        at = tile + ((int)threadIdx.x / GPU_WARP * WARP_OWN + lane_now() % 16) * PITCH<W> +
             lane_now() / 16 * 8;
        lines.load(from);
        __syncthreads();
        lines.store(tile, from);
        __syncthreads();
        if constexpr (HELD) {
            UNROLL
            for (int k = 0; k < W / 16; k++) load_matrices(held[k], at + 16 * k);
        }
    }
    __device__ __forceinline__ void get(unsigned (&to)[4], int k) const
    {
        if constexpr (HELD) {
            UNROLL
            for (int i = 0; i < 4; i++) to[i] = held[k][i];
        } else {
            load_matrices(to, at + 16 * k);
        }
    }
};

/* x = own lines times 8 N lines of a tile. */
template <int W, int N, bool HELD, class T>
static __device__ __forceinline__ void own_products(float (&x)[N][4],
                                                    const own_lines<W, HELD, T> &own, const T *tile)
{
    const T *at = tile + lane_now() % 8 * PITCH<W> + lane_now() / 8 * 8;
    UNROLL
    for (int n = 0; n < N; n++) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0;
    UNROLL
    for (int k = 0; k < W / 32; k++) {
        unsigned one[4], two[4];
        own.get(one, 2 * k);
        own.get(two, 2 * k + 1);
        UNROLL
        for (int n = 0; n < N; n++) {
            unsigned b[4];
            load_matrices(b, at + 8 * n * PITCH<W> + 32 * k);
            add_product<T>(x[n], one, b[0], b[1]);
            add_product<T>(x[n], two, b[2], b[3]);
        }
    }
}

/* sum += weights times 8 N lines of a tile. A weight is the sum of two narrow numbers, so that it
 * has 16 digits or more: rounded to one it would have the 8 of bfloat16, and so would all that is
 * learned. */
template <int W, int N, class T>
static __device__ __forceinline__ void
add_weighted_lines(float (&sum)[W / 8][4], const float (&weight)[N][4], const T *tile)
{
    const T *at = tile + lane_now() % 16 * PITCH<W> + lane_now() / 16 * 8;
    UNROLL
    for (int k = 0; k < N / 2; k++) {
        unsigned high[4], low[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float *w = &weight[2 * k + i / 2][i % 2 * 2];
            high[i] = pair_of<T>(w[0], w[1]);
            low[i] = pair_of<T>(w[0] - first_of<T>(high[i]), w[1] - second_of<T>(high[i]));
        }
        UNROLL
        for (int n = 0; n < W / 16; n++) {
            unsigned b[4];
            load_transposed(b, at + 16 * k * PITCH<W> + 16 * n);
            add_product<T>(sum[2 * n], high, b[0], b[1]);
            add_product<T>(sum[2 * n + 1], high, b[2], b[3]);
            add_product<T>(sum[2 * n], low, b[0], b[1]);
            add_product<T>(sum[2 * n + 1], low, b[2], b[3]);
        }
    }
}

/* Sums of an own line become its n numbers: of the lane's i-th line, times `by`. */
template <int W, class T>
static __device__ __forceinline__ void put_line(T *to, const float (&sum)[W / 8][4], int i,
                                                float by, int n, bool adds, bool wide)
{
    UNROLL
    for (int k = 0; k < W / 8; k++) {
        const int c = 8 * k + pair_place();
        float x[2] = { sum[k][2 * i] * by, sum[k][2 * i + 1] * by };
        if (wide) { /* n is a multiple of 8 */
            if (c >= n) continue;
            const pack<T, 2> old = adds ? load_pack<2>(to + c) : pack<T, 2>();
            UNROLL
            for (int e = 0; e < 2; e++) x[e] = adds ? to_f(old.v[e]) + x[e] : x[e];
            store_pack<2>(to + c, x);
        } else {
            UNROLL
            for (int e = 0; e < 2; e++)
                if (c + e < n) to[c + e] = to_value<T>(adds ? to_f(to[c + e]) + x[e] : x[e]);
        }
    }
}

/* 2^x, without numbers so small that they have fewer digits. */
static __device__ __forceinline__ float power_of_two(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

static __device__ __forceinline__ float natural_power(float x)
{
    return power_of_two(x * 1.44269504f);
}

/* ---- which scores -----------------------------------------------------------------------------
 */

/* Keys [begin, end). */
struct key_span {
    int begin, end;

    __device__ __forceinline__ bool meets(int from, int to) const
    {
        return from < end && to > begin;
    }
    __device__ __forceinline__ bool has(int from, int to) const
    {
        return from >= begin && to <= end;
    }
};

/* The keys of which one of the queries [t, last] may see some. */
template <class T>
static __device__ __forceinline__ key_span seen_by_some(const attention<T> &a, int t, int last)
{
    key_span some = { 0, (int)a.s };
    int ignored;
    if (a.less > 0) return some; /* every key has a weight */
    a.masks.range(t, (int)a.s, &some.begin, &ignored);
    a.masks.range(last < a.t ? last : (int)a.t - 1, (int)a.s, &ignored, &some.end);
    return some;
}

/* The keys that all of them see, so that nobody has to ask. */
template <class T>
static __device__ __forceinline__ key_span seen_by_all(const attention<T> &a, int t, int last)
{
    key_span all = { 0, 0 };
    int ignored;
    if (a.masks.n || last >= a.t) return all;
    a.masks.range(last, (int)a.s, &all.begin, &ignored);
    a.masks.range(t, (int)a.s, &ignored, &all.end);
    return all;
}

/* Bit 4 n + i of the lower half: whether x[n][i] is seen; of the upper half: whether dropout leaves
 * its weight. The masks and the random numbers of four keys are found together, so the lanes that
 * have them take turns, and tell each other. */
template <class T>
static __device__ __forceinline__ unsigned
four_bits(const score_tile<T> &tile, const T *const (&mask)[MASKS_MAX], int t, int j, bool all_seen)
{
    return (all_seen ? 15 : tile.seen_by(t, j, mask)) | (tile.template kept<1>(t, j) & 15) << 16;
}

/* Own lines are queries, from t on, and the others keys. */
template <class T>
static __device__ __forceinline__ unsigned bits_of_queries(const score_tile<T> &tile, int t, int j,
                                                           bool all_seen)
{
    const int lane = lane_now(), pair = lane & 1;
    const T *mask[MASKS_MAX];
    unsigned mine = 0; /* of one of the two queries: of four keys, half of them the neighbour's */
    if (all_seen && !tile.a.drops) return ~0u;
    tile.find_masks(mask);
    UNROLL_1
    for (int n = 0; n < EIGHTS; n++)
        mine |= four_bits(tile, mask, t + lane / 4 + 8 * pair, j + 8 * n + (lane & 2) * 2, all_seen)
                << 4 * n;
    const unsigned other = __shfl_xor_sync(GPU_ALL, mine, 1);
    const unsigned one = (pair ? other : mine) >> 2 * pair & 0x33333333u;
    const unsigned two = (pair ? mine : other) >> 2 * pair & 0x33333333u;
    return one | two << 2;
}

/* Own lines are keys, from j on, and the others queries. */
template <class T>
static __device__ __forceinline__ unsigned bits_of_keys(const score_tile<T> &tile, int t, int j,
                                                        bool all_seen)
{
    const int lane = lane_now(), key = lane / 4 % 4;
    const T *mask[MASKS_MAX];
    unsigned mine = 0, all = 0; /* of one of two queries, and of four of the 8 keys */
    if (all_seen && !tile.a.drops) return ~0u;
    tile.find_masks(mask);
    UNROLL_1
    for (int n = 0; n < EIGHTS; n++)
        mine |= four_bits(tile, mask, t + 8 * n + pair_place() + (key & 1),
                          j + lane / 16 * 4 + (key & 2) * 4, all_seen)
                << 4 * n;
    UNROLL
    for (int i = 0; i < 4; i++) /* 2: the key that is 8 on; 1: the next query */
        all |= (__shfl_sync(GPU_ALL, mine, lane / 16 * 16 + i * 4 + lane % 4) >> key & 0x11111111u)
               << i;
    return all;
}

/* Products become scores; -infinity: not seen, or there is no such query or key. `turned`: own
 * lines are keys. t and j are those of x[0][0]. */
template <int N, class T>
static __device__ __forceinline__ void scores_of(float (&x)[N][4], const attention<T> &a,
                                                 unsigned bits, int t, int j, bool turned)
{
    UNROLL
    for (int n = 0; n < N; n++) {
        UNROLL
        for (int i = 0; i < 4; i++) x[n][i] *= a.scale;
    }
    if ((~bits & ((1u << 4 * N) - 1)) == 0) return;
    unsigned there = 0; /* as bits; those that are not seen and have a weight */
    if (a.less > 0) {
        const int queries = (int)a.t - t, keys = (int)a.s - j;
        const int owns = turned ? keys : queries, others = turned ? queries : keys;
        UNROLL_1
        for (int i = 0; i < 4 * N; i++)
            there |= (unsigned)(i % 4 / 2 * 8 < owns && i / 4 * 8 + i % 2 < others) << i;
    }
    UNROLL
    for (int n = 0; n < N; n++) {
        UNROLL
        for (int i = 0; i < 4; i++)
            if (!(bits >> (4 * n + i) & 1))
                x[n][i] = there >> (4 * n + i) & 1 ? x[n][i] - a.less : -INFINITY;
    }
}

#endif
