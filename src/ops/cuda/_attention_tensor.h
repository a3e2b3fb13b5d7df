/* Attention on tensor cores, for bfloat16 and float16 and heads of at most 128 numbers. As
 * FlashAttention-2 (Dao 2023).
 *
 * A block has BLOCK_OWN lines of its own, queries or, for the gradients of keys and values, keys; a
 * warp has 16 of them, in registers. It goes over the lines of the other kind in tiles of OTHERS,
 * of which the next is on its way meanwhile. Scores and weights stay in registers, too: the sums of
 * one product are the left matrix of the next.
 *
 * Lines are of W numbers, 32, 64 or 128; behind those that exist are zeros, and so are lines that
 * do not exist. Tiles begin at multiples of their length, and come in one order, so what a line
 * gets depends on nothing that is beside it. */
#ifndef KEEL_OPS_CUDA_ATTENTION_TENSOR_H
#define KEEL_OPS_CUDA_ATTENTION_TENSOR_H
#include "ops/cuda/_attention_blocks.h"
#include "ops/cuda/_attention_tensor_tiles.h"

/* Folds what the four lanes of a line have, in one order. */
template <class F> static __device__ __forceinline__ float line_fold(float x, F f)
{
    x = f(x, __shfl_xor_sync(GPU_ALL, x, 1));
    return f(x, __shfl_xor_sync(GPU_ALL, x, 2));
}

/* Whether a tile is on its way while the one before is worked on: long lines leave no registers. */
template <int W> constexpr bool AHEAD = W <= 64;

struct gpu_larger {
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return fmaxf(a, b);
    }
};

/* Bytes of shared memory: the own lines lie there before the first tiles do. */
static constexpr size_t tensor_room(int w)
{
    return sizeof(uint16_t) * (size_t)(BLOCK_OWN * (w + 8));
}

/* ---- forward ----------------------------------------------------------------------------------
 */

/* The lane's two queries: their largest scores, sums of weights, and sums of values. */
template <int W> struct query_sums {
    float most[2], all[2], sum[W / 8][4];

    __device__ __forceinline__ query_sums()
    {
        most[0] = most[1] = -INFINITY;
        all[0] = all[1] = 0;
        UNROLL
        for (int k = 0; k < W / 8; k++) sum[k][0] = sum[k][1] = sum[k][2] = sum[k][3] = 0;
    }
    /* Scores of a tile become weights, and what there is gets the weight that it has beside them.
     * all[] is that of the lane's own keys. A NaN is not the largest, but makes a sum one. */
    __device__ __forceinline__ void weigh(float (&x)[EIGHTS][4])
    {
        float again[2];
        UNROLL
        for (int i = 0; i < 2; i++) {
            const gpu_larger larger;
            float top = most[i], more = 0;
            UNROLL
            for (int n = 0; n < EIGHTS; n++) top = fmaxf(top, fmaxf(x[n][2 * i], x[n][2 * i + 1]));
            top = line_fold(top, larger);
            const float from = top == -INFINITY ? 0 : top;
            again[i] = natural_power(most[i] - from);
            UNROLL
            for (int n = 0; n < EIGHTS; n++) {
                UNROLL
                for (int e = 2 * i; e < 2 * i + 2; e++) {
                    x[n][e] = natural_power(x[n][e] - from);
                    more += x[n][e];
                }
            }
            all[i] = all[i] * again[i] + more;
            most[i] = top;
        }
        if (!warp_votes(again[0] != 1 || again[1] != 1)) return;
        UNROLL
        for (int k = 0; k < W / 8; k++) {
            UNROLL
            for (int i = 0; i < 4; i++) sum[k][i] *= again[i / 2];
        }
    }
};

/* Weights, or gradients, after dropout; the bits are those of bits_of_queries or bits_of_keys. */
template <int N>
static __device__ __forceinline__ void drop_weights(float (&x)[N][4], unsigned bits, float kept)
{
    UNROLL
    for (int n = 0; n < N; n++) {
        UNROLL
        for (int i = 0; i < 4; i++) x[n][i] = bits >> (16 + 4 * n + i) & 1 ? x[n][i] * kept : 0;
    }
}

/* Adds all values of a head to the sums of the lane's i-th query, which sees nothing. */
template <int W, class T>
static __device__ __forceinline__ void add_all_values(float (&sum)[W / 8][4], int i, const T *v,
                                                      const attention<T> &a)
{
    const int n = (int)a.e - pair_place();
    v += pair_place();
    UNROLL_1
    for (int64_t j = 0; j < a.s; j++, v += a.shared * a.e) {
        UNROLL
        for (int k = 0; k < W / 8; k++) {
            UNROLL
            for (int e = 0; e < 2; e++)
                if (8 * k + e < n) sum[k][2 * i + e] += to_f(v[8 * k + e]);
        }
    }
}

/* What a block that has queries works on. */
template <class T> struct query_block {
    head_place p;
    score_tile<T> tile;
    int first, mine, warp_t;            /* queries: the block's, the lane's in it, the warp's */
    key_span some, warp_some, warp_all; /* keys that they see */
    int begin;
    int64_t at, key_head; /* of the first query in memory */

    __device__ __forceinline__ query_block(const attention<T> &a, int64_t number, int64_t piece)
        : p(number, a.heads, a.outer), tile(a, p.row, p.o, p.head), first((int)piece * BLOCK_OWN),
          mine(own_line()), warp_t(first + mine / WARP_OWN * WARP_OWN),
          some(seen_by_some(a, first, first + BLOCK_OWN - 1)),
          warp_some(seen_by_some(a, warp_t, warp_t + WARP_OWN - 1)),
          warp_all(seen_by_all(a, warp_t, warp_t + WARP_OWN - 1)),
          begin(some.begin / OTHERS * OTHERS), at(a.query_at(p.row, tile.first_line + first)),
          key_head(quotient(p.head, a.share))
    {
    }
    __device__ __forceinline__ int64_t key(int j) const /* in memory */
    {
        return tile.a.key_at(p.row, p.o, j, key_head);
    }
    /* Whether the warp has to do with the tile of keys, and then what scores_of needs of it. */
    __device__ __forceinline__ bool works(int from) const
    {
        return warp_t < tile.a.t && warp_some.meets(from, from + OTHERS);
    }
    __device__ __forceinline__ unsigned bits(int from) const
    {
        return bits_of_queries(tile, warp_t, from, warp_all.has(from, from + OTHERS));
    }
};

/* The block's number among those of its head, and the head's. */
static __device__ __forceinline__ int64_t block_place(const block_order &order, int64_t *piece)
{
    int64_t number;
    order.find(blockIdx.x, &number, piece);
    return number;
}

/* Blocks of a multiprocessor. */
template <int W> constexpr int FORWARD_BLOCKS = W == 128 ? 2 : W == 64 ? 3 : 4;

template <int W, class T>
static __global__ void __launch_bounds__(TENSOR_THREADS, FORWARD_BLOCKS<W>)
    tensor_forward_kernel(T *y, float *saved, const attention<T> a, const block_order order)
{
    SHARED_DYN(T, k);
    T *const v = k + OTHERS * PITCH<W>;
    int64_t piece;
    const int64_t number = block_place(order, &piece);
    const query_block<T> m(a, number, order.pieces - 1 - piece); /* causal: the last do the most */
    const int t = m.first + m.mine;
    line_array<T> of_k = keys_at(a, m.key(m.begin), m.some.end - m.begin);
    line_array<T> of_v = values_at(a, m.key(m.begin), m.some.end - m.begin);
    lines_ahead<W, OTHERS, T> keys, values;
    query_sums<W> l;
    own_lines<W, true, T> q;
    q.load(k, queries_at(a, m.at, (int)a.t - m.first));
    if (AHEAD<W>) keys.load(of_k), values.load(of_v);
    for (int from = m.begin; from < m.some.end; from += OTHERS) {
        if (!AHEAD<W>) keys.load(of_k), values.load(of_v);
        __syncthreads(); /* nobody reads what lies there any more */
        keys.store(k, of_k);
        values.store(v, of_v);
        __syncthreads();
        of_k.skip(OTHERS);
        of_v.skip(OTHERS);
        const bool works = m.works(from);
        const unsigned bits = works ? m.bits(from) : 0;
        if (AHEAD<W>) keys.load(of_k), values.load(of_v); /* bits need registers, too */
        if (!works) continue;
        float x[EIGHTS][4];
        own_products(x, q, k);
        scores_of(x, a, bits, t, from + pair_place(), false);
        l.weigh(x);
        if (a.drops) drop_weights(x, bits, a.kept);
        add_weighted_lines<W>(l.sum, x, v);
    }
    const float all[2] = { line_fold(l.all[0], gpu_plus()), line_fold(l.all[1], gpu_plus()) };
    UNROLL
    for (int i = 0; i < 2; i++) {
        const bool blind = all[i] == 0;
        if (t + 8 * i >= a.t) continue;
        if (blind && a.uniform) add_all_values<W>(l.sum, i, a.v + m.key(0) * a.e, a);
        const float by = !blind ? 1 / all[i] : a.uniform ? 1 / (float)a.s : 0;
        put_line<W>(y + (m.at + (m.mine + 8 * i) * a.heads) * a.e, l.sum, i, by, (int)a.e, false,
                    a.wide_e);
        if (saved && pair_place() == 0) {
            float *s = saved + 2 * (m.p.row * a.lines + m.tile.first_line + t + 8 * i);
            s[0] = blind ? 0 : l.most[i];
            s[1] = blind ? 0 : 1 / all[i];
        }
    }
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* sum(y g) of each line. W / 8 threads have a line, of which each has several. */
template <int W, class T>
static __global__ void __launch_bounds__(CUDA_THREADS, 2)
    tensor_mean_kernel(float *mean, const T *y, const T *g, const attention<T> a)
{
    constexpr int ACROSS = W / 8, DOWN = CUDA_THREADS / ACROSS, U = 4;
    const int c = (int)threadIdx.x % ACROSS * 8, down = (int)threadIdx.x / ACROSS;
    const int64_t lines = a.rows * a.lines;
    for (int64_t from = (int64_t)blockIdx.x * DOWN * U; from < lines;
         from += (int64_t)gridDim.x * DOWN * U) { /* as they lie in memory */
        pack<T, 8> of_y[U], of_g[U];
        UNROLL
        for (int u = 0; u < U; u++) {
            const int64_t line = from + u * DOWN + down, at = line * a.e + c;
            const int64_t n = line < lines ? a.e - c : 0;
            of_y[u] = of_g[u] = pack<T, 8>();
            if (n <= 0) continue;
            of_y[u] = a.wide_e ? load_pack<8>(y + at) : load_place<false, 8>(y + at, n);
            of_g[u] = a.wide_e ? load_pack<8>(g + at) : load_place<false, 8>(g + at, n);
        }
        UNROLL
        for (int u = 0; u < U; u++) {
            float sum = 0;
            UNROLL
            for (int e = 0; e < 8; e++) sum = fmaf(to_f(of_y[u].v[e]), to_f(of_g[u].v[e]), sum);
            UNROLL
            for (int by = 1; by < ACROSS; by *= 2) sum += __shfl_xor_sync(GPU_ALL, sum, by);
            int64_t row = from + u * DOWN + down;
            if (c > 0 || row >= lines) continue;
            const int64_t head = take(&row, a.heads), t = take(&row, a.t), o = take(&row, a.outer);
            mean[row * a.lines + (o * a.heads + head) * a.t + t] = sum;
        }
    }
}

/* Scores and the gradients of weights become weights and the gradients of scores. facts(n, i) are
 * those of the query of x[n][i]. */
template <int N, class T, class F>
static __device__ __forceinline__ void back_weigh_all(float (&x)[N][4], float (&dx)[N][4],
                                                      const attention<T> &a, unsigned bits, F facts)
{
    if (a.drops) drop_weights(dx, bits, a.kept);
    UNROLL
    for (int n = 0; n < N; n++) {
        UNROLL
        for (int i = 0; i < 4; i++) {
            const query_facts q = facts(n, i);
            const float p = natural_power(x[n][i] - q.most) * q.r;
            dx[n][i] = p == 0 ? 0 : p * ((dx[n][i] - q.mean) * a.scale);
            x[n][i] = p;
        }
    }
    if (a.drops) drop_weights(x, bits, a.kept);
    if (!a.uniform) return;
    UNROLL
    for (int n = 0; n < N; n++) {
        UNROLL
        for (int i = 0; i < 4; i++) x[n][i] = facts(n, i).r == 0 ? facts(n, i).blind : x[n][i];
    }
}

template <int W, class T>
static __global__ void __launch_bounds__(TENSOR_THREADS, 2)
    tensor_query_kernel(T *dq, const T *dy, const float *saved, const float *mean,
                        const attention<T> a, const block_order order, bool adds)
{
    SHARED_DYN(T, k);
    T *const v = k + OTHERS * PITCH<W>;
    int64_t piece;
    const int64_t number = block_place(order, &piece);
    const query_block<T> m(a, number, order.pieces - 1 - piece);
    const int t = m.first + m.mine;
    line_array<T> of_k = keys_at(a, m.key(m.begin), m.some.end - m.begin);
    line_array<T> of_v = values_at(a, m.key(m.begin), m.some.end - m.begin);
    lines_ahead<W, OTHERS, T> keys, values;
    own_lines<W, true, T> q, g;
    float sum[W / 8][4];
    const query_facts facts[2] = { query_facts_of(a, m.tile, saved, mean, t),
                                   query_facts_of(a, m.tile, saved, mean, t + 8) };
    UNROLL
    for (int n = 0; n < W / 8; n++) sum[n][0] = sum[n][1] = sum[n][2] = sum[n][3] = 0;
    q.load(k, queries_at(a, m.at, (int)a.t - m.first));
    g.load(k, outputs_at(a, dy, m.at, (int)a.t - m.first));
    if (AHEAD<W>) keys.load(of_k), values.load(of_v);
    for (int from = m.begin; from < m.some.end; from += OTHERS) {
        if (!AHEAD<W>) keys.load(of_k), values.load(of_v);
        __syncthreads();
        keys.store(k, of_k);
        values.store(v, of_v);
        __syncthreads();
        of_k.skip(OTHERS);
        of_v.skip(OTHERS);
        const bool works = m.works(from);
        const unsigned bits = works ? m.bits(from) : 0;
        if (AHEAD<W>) keys.load(of_k), values.load(of_v);
        if (!works) continue;
        float x[EIGHTS][4], dx[EIGHTS][4];
        own_products(x, q, k);
        own_products(dx, g, v);
        scores_of(x, a, bits, t, from + pair_place(), false);
        back_weigh_all(x, dx, a, bits, [&](int, int i) { return facts[i / 2]; });
        add_weighted_lines<W>(sum, dx, k);
    }
    UNROLL
    for (int i = 0; i < 2; i++)
        if (t + 8 * i < a.t)
            put_line<W>(dq + (m.at + (m.mine + 8 * i) * a.heads) * a.d, sum, i, 1, (int)a.d, adds,
                        a.wide_d);
}

/* Tiles are of the queries [begin, end) of all heads that share the keys. */
struct query_turn {
    int begin, end, head, from;

    /* The queries that may see some of the keys [first, last]: those of tiles beside each other. */
    template <class T>
    __device__ __forceinline__ query_turn(const attention<T> &a, int first, int last)
        : begin(0), end((int)a.t), head(0)
    {
        while (begin < end && !meets(a, begin, first, last)) begin += OTHERS;
        while (begin < end && !meets(a, (end - 1) / OTHERS * OTHERS, first, last))
            end = (end - 1) / OTHERS * OTHERS;
        from = begin;
        if (begin >= end) head = (int)a.share;
    }
    template <class T>
    static __device__ __forceinline__ bool meets(const attention<T> &a, int from, int first,
                                                 int last)
    { /* what sees nothing may have weights */
        return a.uniform || seen_by_some(a, from, from + OTHERS - 1).meets(first, last + 1);
    }
    __device__ __forceinline__ void next()
    {
        from += OTHERS;
        if (from >= end) from = begin, head++;
    }
};

template <int W> constexpr bool VALUES_HELD = W <= 64;

/* Bytes of shared memory: values that are not held are behind the tiles. */
static constexpr size_t tensor_key_room(int w)
{
    return tensor_room(w) * (w <= 64 ? 1 : 2);
}

/* OF_K, OF_V: which gradients. Both have room in registers where lines are short. */
template <int W, bool OF_K, bool OF_V, class T>
static __global__ void __launch_bounds__(TENSOR_THREADS, 2)
    tensor_key_kernel(T *dk, T *dv, const T *dy, const float *saved, const float *mean,
                      const attention<T> a, const block_order order, bool k_adds, bool v_adds)
{
    SHARED_DYN(T, q);
    SHARED(query_facts, facts, OTHERS);
    T *const g = q + OTHERS * PITCH<W>;
    int64_t piece;
    const int64_t number = block_place(order, &piece);
    const head_place p(number, a.shared, a.outer);
    const int first = (int)piece * BLOCK_OWN, mine = own_line(), left = (int)a.s - first;
    const int warp_j = first + mine / WARP_OWN * WARP_OWN, c = pair_place();
    const int64_t at = a.key_at(p.row, p.o, first, p.head);
    own_lines<W, true, T> k;
    own_lines<W, VALUES_HELD<W>, T> v;
    constexpr int N = W <= 64 ? EIGHTS : EIGHTS / 2; /* so many scores at once */
    float of_k[W / 8][4], of_v[W / 8][4];
    lines_ahead<W, OTHERS, T> queries, outputs;
    query_facts fact;
    line_array<T> of_q = {}, of_g = {};
    UNROLL
    for (int n = 0; n < W / 8; n++) {
        UNROLL
        for (int i = 0; i < 4; i++) of_k[n][i] = of_v[n][i] = 0;
    }
    k.load(q, keys_at(a, at, left));
    if (OF_K) v.load(VALUES_HELD<W> ? q : g + OTHERS * PITCH<W>, values_at(a, at, left));
    query_turn turn(a, first, first + BLOCK_OWN - 1), next = turn;
    const auto load = [&] {
        if (next.head >= a.share) return;
        const score_tile<T> tile(a, p.row, p.o, p.head * a.share + next.head);
        const int64_t to = a.query_at(p.row, tile.first_line + next.from);
        of_q = queries_at(a, to, next.end - next.from);
        of_g = outputs_at(a, dy, to, next.end - next.from);
        queries.load(of_q);
        outputs.load(of_g);
        if (threadIdx.x < OTHERS)
            fact = query_facts_of(a, tile, saved, mean, next.from + threadIdx.x);
    };
    if (AHEAD<W>) load();
    for (; turn.head < a.share; turn = next) {
        if (!AHEAD<W>) load();
        __syncthreads();
        queries.store(q, of_q);
        outputs.store(g, of_g);
        if (threadIdx.x < OTHERS) facts[threadIdx.x] = fact;
        __syncthreads();
        const int from = turn.from, last = from + OTHERS - 1;
        const bool works =
            warp_j < a.s && query_turn::meets(a, from, warp_j, warp_j + WARP_OWN - 1);
        const bool all_seen = seen_by_all(a, from, last).has(warp_j, warp_j + WARP_OWN);
        const score_tile<T> tile(a, p.row, p.o, p.head * a.share + turn.head);
        const unsigned bits = works ? bits_of_keys(tile, from, warp_j, all_seen) : 0;
        next.next();
        if (AHEAD<W>) load();
        if (!works) continue;
        UNROLL_1
        for (int i = 0; i < OTHERS; i += 8 * N) {
            const T *const some_q = q + i * PITCH<W>, *const some_g = g + i * PITCH<W>;
            float x[N][4], dx[N][4] = {};
            own_products(x, k, some_q);
            if (OF_K) own_products(dx, v, some_g);
            scores_of(x, a, bits >> i / 2, from + i + c, first + mine, true);
            back_weigh_all(x, dx, a, bits >> i / 2,
                           [&](int n, int e) { return facts[i + 8 * n + c + e % 2]; });
            if (OF_V && dv) add_weighted_lines<W>(of_v, x, some_g);
            if (OF_K && dk) add_weighted_lines<W>(of_k, dx, some_q);
        }
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        const int64_t to = at + (mine + 8 * i) * a.shared;
        if (mine + 8 * i >= left) continue;
        if (OF_K && dk) put_line<W>(dk + to * a.d, of_k, i, 1, (int)a.d, k_adds, a.wide_d);
        if (OF_V && dv) put_line<W>(dv + to * a.e, of_v, i, 1, (int)a.e, v_adds, a.wide_e);
    }
}

#endif
