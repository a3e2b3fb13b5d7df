/* Attention in blocks, for heads of at most 64 numbers: what is fast in dot_product_attention. As
 * FlashAttention-2 (Dao 2023), in float32.
 *
 * A block has LINES lines of its own, queries or, for the gradients of keys and values, keys; a
 * warp has half of them. It goes over the lines of the other kind in tiles. Products of lines, and
 * sums of lines, are worked out from shared memory into tiles of registers: a thread has 4 x 4 or
 * 8 x 4 numbers, so that each number that is read serves in 4 or 8 multiply-adds.
 *
 * Lines are of W numbers, 32 or 64; behind those that exist are zeros, and so are lines that do not
 * exist. Tiles of keys begin at multiples of their length, and a query's keys come in one order, so
 * what a query gets depends on nothing that is beside it. */
#ifndef KEEL_OPS_CUDA_ATTENTION_BLOCKS_H
#define KEEL_OPS_CUDA_ATTENTION_BLOCKS_H
#include "ops/cuda/_attention_tiles.h"

/* ---- forward ----------------------------------------------------------------------------------
 */

/* The lines of a thread: their largest scores, sums of weights, and sums of values. */
template <class PART> struct line_sums {
    static const int R = PART::R;
    float most[R], all[R], sum[R][4];

    __device__ __forceinline__ line_sums()
    {
        UNROLL
        for (int i = 0; i < R; i++) {
            most[i] = -INFINITY;
            all[i] = sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0;
        }
    }
    /* Scores of a tile become weights, and what there is gets the weight that it has beside them.
     * all[] is that of the thread's own keys. */
    __device__ __forceinline__ void weigh(float (&x)[R][4])
    {
        UNROLL
        for (int i = 0; i < R; i++) {
            const gpu_greater greater;
            float top = greater(greater(x[i][0], x[i][1]), greater(x[i][2], x[i][3]));
            top = PART::fold(top, greater);
            const float now = greater(top, most[i]);
            const float again = most[i] == -INFINITY ? 0 : expf(most[i] - now);
            UNROLL
            for (int e = 0; e < 4; e++) {
                x[i][e] = now == -INFINITY ? 0 : expf(x[i][e] - now);
                sum[i][e] *= again;
            }
            all[i] = all[i] * again + ((x[i][0] + x[i][1]) + (x[i][2] + x[i][3]));
            most[i] = now;
        }
    }
};

/* Floats of shared memory. */
static __host__ __device__ constexpr int block_forward_room(int w)
{
    return LINES * w + 2 * w * w;
}

template <int W, class T>
static __global__ void __launch_bounds__(BLOCK_THREADS, W == 64 ? 5 : 4)
    block_forward_kernel(T *y, float *saved, const attention<T> a, const block_order order,
                         int64_t blocks)
{
    constexpr int KEYS = W, R = thread_part<W>::R;
    const thread_part<W> own;
    SHARED_DYN(float, q);
    float *const k = q + LINES * W, *const v = k + KEYS * W, *const w = k;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        int64_t number, piece, begin, end, ignored, warp_end;
        order.find(b, &number, &piece);
        const head_place p(number, a.heads, a.outer);
        const score_tile<T> tile(a, p.row, p.o, p.head);
        const int64_t first = (order.pieces - 1 - piece) * LINES; /* causal: the last do the most */
        const int64_t t = first + own.line, key_head = quotient(p.head, a.share);
        const int64_t at = a.query_at(p.row, tile.first_line + first);
        line_sums<thread_part<W>> l;
        a.range(first, first + LINES - 1, &begin, &end);
        a.range(first, first + (own.line / WARP_LINES + 1) * WARP_LINES - 1, &ignored, &warp_end);
        fill_lines<W, LINES>(q, a.q + at * a.d, a.d, a.heads * a.d, a.t - first, a.wide_d);
        for (int64_t from = begin - begin % KEYS; from < end; from += KEYS) {
            const int64_t key = a.key_at(p.row, p.o, from, key_head), left = warp_end - from;
            const int64_t j = from + 4 * own.c;
            const bool all_seen = sees_all(a, first, first + LINES - 1, from, from + KEYS);
            const unsigned seen = all_seen ? ~0u : tile.template seen<R>(t, j);
            const unsigned kept = tile.template kept<R>(t, j);
            float x[R][4];
            __syncthreads();
            fill_lines<W, KEYS>(k, a.k + key * a.d, a.d, a.shared * a.d, end - from, a.wide_d);
            fill_lines<W, KEYS>(v, a.v + key * a.e, a.e, a.shared * a.e, end - from, a.wide_e);
            __syncthreads();
            line_products<W>(x, q, own.line, k, 4 * own.c);
            UNROLL
            for (int i = 0; i < R; i++) tile.scores(x[i], t + i, j, seen >> 4 * i);
            l.weigh(x);
            __syncthreads(); /* keys and queries have been read: weights lie in the keys' place */
            UNROLL
            for (int i = 0; i < R; i++) {
                UNROLL
                for (int e = 0; e < 4; e++)
                    if (x[i][e] > 0) x[i][e] *= kept >> (4 * i + e) & 1 ? tile.factor() : 0;
                store4(w + spot<KEYS>(own.line, i, own.c), x[i]);
            }
            __syncwarp();
            add_weighted<W, KEYS>(l.sum, w, own.line, v, own.c, left < KEYS ? (int)left : KEYS);
        }
        UNROLL
        for (int i = 0; i < R; i++) {
            const float all = own.fold(l.all[i], gpu_plus());
            const bool blind = l.most[i] == -INFINITY;
            const int64_t line = own.line + i, out = (at + line * a.heads) * a.e + 4 * own.c;
            const int64_t here = t + i < a.t ? a.e - 4 * own.c : 0;
            if (here > 0 && blind && a.uniform)
                for (int64_t j = 0; j < a.s; j++) {
                    float of[4];
                    load_some(of, a.v + a.key_at(p.row, p.o, j, key_head) * a.e + 4 * own.c, here,
                              a.wide_e);
                    UNROLL
                    for (int e = 0; e < 4; e++) l.sum[i][e] += of[e];
                }
            const float by = !blind ? 1 / all : a.uniform ? 1 / (float)a.s : 0;
            UNROLL
            for (int e = 0; e < 4; e++) l.sum[i][e] *= by;
            if (here > 0) store_some(y + out, l.sum[i], here, a.wide_e);
            if (saved && t + i < a.t && own.c == 0) {
                float *s = saved + 2 * (p.row * a.lines + tile.first_line + t + i);
                s[0] = blind ? 0 : l.most[i];
                s[1] = blind ? 0 : 1 / all;
            }
        }
    }
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* What a thread has of a tile of products: 4 x 4 of them. */
struct product_part {
    int line, other; /* the first own line, and the first of the tile's */

    __device__ __forceinline__ product_part()
        : line((int)threadIdx.x / GPU_WARP * WARP_LINES + lane_number() / 8 * 4),
          other(lane_number() % 8 * 4)
    {
    }
};

/* What forward has left of a query; r is 0 if it sees nothing, or does not exist. */
struct query_facts {
    float most, r, mean, blind; /* mean: sum(y g); blind: the weight of what it does not see */
};

template <class T>
static __device__ __forceinline__ query_facts query_facts_of(const attention<T> &a,
                                                             const score_tile<T> &tile,
                                                             const float *saved, const float *mean,
                                                             int64_t t)
{
    query_facts f = { 0, 0, 0, 0 };
    if (t >= a.t) return f;
    const int64_t line = tile.row * a.lines + tile.first_line + t;
    f.most = saved[2 * line];
    f.r = saved[2 * line + 1];
    f.mean = mean[line];
    f.blind = a.uniform && f.r == 0 ? 1 / (float)a.s : 0;
    return f;
}

/* Of query t and four keys, of which the bits tell: products x with the query become weights after
 * dropout, and products dx of its gradient with the values become gradients of scores. */
template <class T>
static __device__ __forceinline__ void
back_weigh(float (&x)[4], float (&dx)[4], const score_tile<T> &tile, const query_facts &q,
           int64_t t, int64_t j, unsigned seen, unsigned kept)
{
    tile.scores(x, t, j, seen);
    UNROLL
    for (int e = 0; e < 4; e++) {
        const float p = q.r == 0 ? 0 : expf(x[e] - q.most) * q.r;
        const float f = kept >> e & 1 ? tile.factor() : 0;
        dx[e] = p == 0 ? 0 : p * (f * dx[e] - q.mean) * tile.a.scale;
        x[e] = q.r == 0 ? q.blind : p * f;
    }
}

static __host__ __device__ constexpr int block_query_room(int w)
{
    return 4 * LINES * w + LINES * LINES;
}

template <int W, class T>
static __global__ void __launch_bounds__(BLOCK_THREADS, W == 64 ? 5 : 4)
    block_query_kernel(T *dq, const T *dy, const float *saved, const float *mean,
                       const attention<T> a, const block_order order, int64_t blocks, bool adds)
{
    const thread_part<W> own;
    const product_part part;
    constexpr int R = thread_part<W>::R;
    SHARED_DYN(float, q);
    float *const g = q + LINES * W, *const k = g + LINES * W, *const v = k + LINES * W;
    float *const ds = v + LINES * W;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        int64_t number, piece, begin, end, ignored, warp_end;
        order.find(b, &number, &piece);
        const head_place p(number, a.heads, a.outer);
        const score_tile<T> tile(a, p.row, p.o, p.head);
        const int64_t first = (order.pieces - 1 - piece) * LINES, t = first + part.line;
        const int64_t at = a.query_at(p.row, tile.first_line + first);
        const int64_t key_head = quotient(p.head, a.share);
        float sum[R][4];
        query_facts facts[4];
        UNROLL
        for (int i = 0; i < R; i++) sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0;
        UNROLL
        for (int i = 0; i < 4; i++) facts[i] = query_facts_of(a, tile, saved, mean, t + i);
        a.range(first, first + LINES - 1, &begin, &end);
        a.range(first, first + (own.line / WARP_LINES + 1) * WARP_LINES - 1, &ignored, &warp_end);
        fill_lines<W, LINES>(q, a.q + at * a.d, a.d, a.heads * a.d, a.t - first, a.wide_d);
        fill_lines<W, LINES>(g, dy + at * a.e, a.e, a.heads * a.e, a.t - first, a.wide_e);
        for (int64_t from = begin - begin % LINES; from < end; from += LINES) {
            const int64_t key = a.key_at(p.row, p.o, from, key_head), left = warp_end - from;
            const int64_t j = from + part.other;
            const bool all_seen = sees_all(a, first, first + LINES - 1, from, from + LINES);
            const unsigned seen = all_seen ? ~0u : tile.template seen<4>(t, j);
            const unsigned kept = tile.template kept<4>(t, j);
            float x[4][4], dx[4][4];
            __syncthreads();
            fill_lines<W, LINES>(k, a.k + key * a.d, a.d, a.shared * a.d, end - from, a.wide_d);
            fill_lines<W, LINES>(v, a.v + key * a.e, a.e, a.shared * a.e, end - from, a.wide_e);
            __syncthreads();
            line_products<W>(x, q, part.line, k, part.other);
            line_products<W>(dx, g, part.line, v, part.other);
            UNROLL
            for (int i = 0; i < 4; i++) {
                back_weigh(x[i], dx[i], tile, facts[i], t + i, j, seen >> 4 * i, kept >> 4 * i);
                store4(ds + spot<LINES>(part.line, i, part.other / 4), dx[i]);
            }
            __syncwarp();
            add_weighted<W, LINES>(sum, ds, own.line, k, own.c, left < LINES ? (int)left : LINES);
        }
        UNROLL
        for (int i = 0; i < R; i++)
            if (first + own.line + i < a.t)
                put4(dq + (at + (own.line + i) * a.heads) * a.d + 4 * own.c, sum[i],
                     a.d - 4 * own.c, adds, a.wide_d);
        __syncthreads();
    }
}

static __host__ __device__ constexpr int block_key_room(int w)
{
    return 4 * LINES * w + 2 * LINES * LINES;
}

/* Tiles are of the queries of all heads that share the keys. */
template <int W, class T>
static __global__ void __launch_bounds__(BLOCK_THREADS, 4)
    block_key_kernel(T *dk, T *dv, const T *dy, const float *saved, const float *mean,
                     const attention<T> a, const block_order order, int64_t blocks, bool k_adds,
                     bool v_adds)
{
    const thread_part<W> own;
    const product_part part;
    constexpr int R = thread_part<W>::R;
    SHARED_DYN(float, k);
    float *const v = k + LINES * W, *const q = v + LINES * W, *const g = q + LINES * W;
    float *const w = g + LINES * W, *const ds = w + LINES * LINES;
    const int64_t tiles = (a.t + LINES - 1) / LINES;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        int64_t number, piece;
        order.find(b, &number, &piece);
        const head_place p(number, a.shared, a.outer);
        const int64_t first = piece * LINES, j = first + part.line, left = a.s - first;
        const int64_t key = a.key_at(p.row, p.o, first, p.head);
        float of_k[R][4], of_v[R][4];
        UNROLL
        for (int i = 0; i < R; i++)
            for (int e = 0; e < 4; e++) of_k[i][e] = of_v[i][e] = 0;
        fill_lines<W, LINES>(k, a.k + key * a.d, a.d, a.shared * a.d, left, a.wide_d);
        fill_lines<W, LINES>(v, a.v + key * a.e, a.e, a.shared * a.e, left, a.wide_e);
        for (int64_t turn = 0; turn < a.share * tiles; turn++) {
            int64_t in_share = turn;
            const int64_t from = take(&in_share, tiles) * LINES, last = from + LINES - 1;
            if (sees_none(a, from, last, first, first + LINES)) continue; /* so do all threads */
            const score_tile<T> tile(a, p.row, p.o, p.head * a.share + in_share);
            const int64_t at = a.query_at(p.row, tile.first_line + from), queries = a.t - from;
            const int64_t t = from + part.other;
            const bool all_seen = sees_all(a, from, last, first, first + LINES);
            const unsigned seen = all_seen ? ~0u : tile.template seen<4>(t, j);
            const unsigned kept = tile.template kept<4>(t, j);
            float x[4][4], dx[4][4];
            __syncthreads();
            fill_lines<W, LINES>(q, a.q + at * a.d, a.d, a.heads * a.d, queries, a.wide_d);
            fill_lines<W, LINES>(g, dy + at * a.e, a.e, a.heads * a.e, queries, a.wide_e);
            __syncthreads();
            line_products<W>(x, k, part.line, q, part.other);
            line_products<W>(dx, v, part.line, g, part.other);
            UNROLL
            for (int i = 0; i < 4; i++) {
                const query_facts facts = query_facts_of(a, tile, saved, mean, t + i);
                float of[4] = { x[0][i], x[1][i], x[2][i], x[3][i] };
                float back[4] = { dx[0][i], dx[1][i], dx[2][i], dx[3][i] };
                back_weigh(of, back, tile, facts, t + i, j, seen >> 4 * i, kept >> 4 * i);
                UNROLL
                for (int e = 0; e < 4; e++) x[e][i] = of[e], dx[e][i] = back[e];
            }
            UNROLL
            for (int i = 0; i < 4; i++) {
                store4(w + spot<LINES>(part.line, i, part.other / 4), x[i]);
                store4(ds + spot<LINES>(part.line, i, part.other / 4), dx[i]);
            }
            __syncwarp();
            const int lines = queries < LINES ? (int)queries : LINES;
            if (dv) add_weighted<W, LINES>(of_v, w, own.line, g, own.c, lines);
            if (dk) add_weighted<W, LINES>(of_k, ds, own.line, q, own.c, lines);
        }
        UNROLL
        for (int i = 0; i < R; i++) {
            const int64_t to = key + (own.line + i) * a.shared, c = 4 * own.c;
            if (own.line + i >= left) continue;
            if (dk) put4(dk + to * a.d + c, of_k[i], a.d - c, k_adds, a.wide_d);
            if (dv) put4(dv + to * a.e + c, of_v[i], a.e - c, v_adds, a.wide_e);
        }
        __syncthreads();
    }
}

#endif
