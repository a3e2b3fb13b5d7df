/* Attention by blocks: tiles of lines in shared memory, products of them in registers, and which
 * scores count. For _attention_blocks.h, which says who has what. */
#ifndef KEEL_OPS_CUDA_ATTENTION_TILES_H
#define KEEL_OPS_CUDA_ATTENTION_TILES_H
#include "ops/cuda/_attention.h"

static const int LINES = 32, BLOCK_THREADS = 2 * GPU_WARP, WARP_LINES = LINES / 2;
static const int64_t BLOCK_WIDTH_MOST = 64;

#ifdef __CUDACC__
#define UNROLL_2 _Pragma("unroll 2")
#else
#define UNROLL_2
#endif

/* ---- tiles ------------------------------------------------------------------------------------
 */

/* Where numbers 4 c to 4 c + 3 of a line are. Threads read the same numbers of lines that are 4
 * apart, and neighbours of one line: neither meets a bank twice. */
template <int W> static __device__ __forceinline__ int spot(int line, int c)
{
    return line * W + ((c ^ (line >> 2 & 7)) << 2);
}

/* The same of line + i, where the line is a multiple of 4: one place serves four lines. */
template <int W> static __device__ __forceinline__ int spot(int line, int i, int c)
{
    return spot<W>(line + (i & ~3), c) + (i & 3) * W;
}

/* A warp's threads in such an order that of 16 neighbours, which read at once, both those that
 * differ in the lowest bit and those that differ in the next have a number in common: reads of 16
 * bytes then take two turns, not four. Neighbours of this order are lane_of(1), (2).. apart. */
static __device__ __forceinline__ int lane_number()
{
    const int lane = (int)threadIdx.x % GPU_WARP;
    return (lane & 1) | (lane >> 1 & 14) | (lane & 2) << 3;
}

static __device__ __forceinline__ int lane_of(int power) /* of two, but not 16 */
{
    return power == 1 ? 1 : 2 * power;
}

/* What a thread has of lines that all threads of its warp share: R of them from `line` on, and
 * numbers 4 c to 4 c + 3. */
template <int W> struct thread_part {
    static const int ACROSS = W / 4, R = ACROSS / 2;
    int c, line;

    __device__ __forceinline__ thread_part()
        : c(lane_number() % ACROSS),
          line((int)threadIdx.x / GPU_WARP * WARP_LINES + lane_number() / ACROSS * R)
    {
    }
    /* Folds values of a line, in one order. */
    template <class F> static __device__ __forceinline__ float fold(float x, F f)
    {
        UNROLL
        for (int by = ACROSS / 2; by > 0; by /= 2)
            x = f(x, __shfl_xor_sync(GPU_ALL, x, lane_of(by)));
        return x;
    }
};

/* Lines of n numbers, `apart` each, of which `count` exist, become a tile of N lines. `wide`:
 * load4 may be used. */
template <int W, int N, class T>
static __device__ __forceinline__ void fill_lines(float *tile, const T *from, int64_t n,
                                                  int64_t apart, int64_t count, bool wide)
{
    constexpr int ACROSS = W / 4, DOWN = BLOCK_THREADS / ACROSS;
    constexpr int TURNS = N / DOWN < 8 ? N / DOWN : 8; /* at once */
    static_assert(N % (DOWN * TURNS) == 0, "no turn is left over");
    const int lines = count < N ? (int)count : N, c = (int)threadIdx.x % ACROSS;
    const bool here = 4 * c < n;
    const T *at = from + (here ? 4 * c : 0);
    for (int line = (int)threadIdx.x / ACROSS; line < N; line += DOWN * TURNS) {
        float x[TURNS][4];
        if (wide) { /* all of them are on their way at the same time */
            UNROLL
            for (int u = 0; u < TURNS; u++) {
                const int i = line + u * DOWN;
                load4(x[u], at + (i < lines ? i : lines - 1) * apart);
            }
        } else {
            UNROLL
            for (int u = 0; u < TURNS; u++) {
                const int i = line + u * DOWN;
                load_some(x[u], at + (i < lines ? i : lines - 1) * apart, n - 4 * c, false);
            }
        }
        UNROLL
        for (int u = 0; u < TURNS; u++) {
            const int i = line + u * DOWN;
            UNROLL
            for (int e = 0; e < 4; e++) x[u][e] = here && i < lines ? x[u][e] : 0;
            store4(tile + spot<W>(i, c), x[u]);
        }
    }
}

/* x[i][j] = line p + i of a times line r + j of b. */
template <int W, int R>
static __device__ __forceinline__ void line_products(float (&x)[R][4], const float *a, int p,
                                                     const float *b, int r)
{
    UNROLL
    for (int i = 0; i < R; i++) x[i][0] = x[i][1] = x[i][2] = x[i][3] = 0;
    UNROLL_2
    for (int c = 0; c < W / 4; c++) {
        float y[4][4];
        UNROLL
        for (int j = 0; j < 4; j++) load4(y[j], b + spot<W>(r, j, c));
        UNROLL
        for (int i = 0; i < R; i++) {
            float own[4];
            load4(own, a + spot<W>(p, i, c));
            UNROLL
            for (int e = 0; e < 4; e++) {
                UNROLL
                for (int j = 0; j < 4; j++) x[i][j] = fmaf(own[e], y[j][e], x[i][j]);
            }
        }
    }
}

/* sum[i] += the first `lines` of line p + i of w, of L weights, times the lines of b: numbers 4 c
 * to 4 c + 3. */
template <int W, int L, int R>
static __device__ __forceinline__ void add_weighted(float (&sum)[R][4], const float *w, int p,
                                                    const float *b, int c, int lines)
{
    for (int k = 0; 4 * k < lines; k++) {
        float y[4][4];
        UNROLL
        for (int m = 0; m < 4; m++) load4(y[m], b + spot<W>(4 * k, m, c));
        UNROLL
        for (int i = 0; i < R; i++) {
            float by[4];
            load4(by, w + spot<L>(p, i, k));
            UNROLL
            for (int m = 0; m < 4; m++) {
                UNROLL
                for (int e = 0; e < 4; e++) sum[i][e] = fmaf(by[m], y[m][e], sum[i][e]);
            }
        }
    }
}

template <class T>
static __device__ __forceinline__ void put4(T *to, const float x[4], int64_t n, bool adds,
                                            bool wide)
{
    float y[4] = { x[0], x[1], x[2], x[3] };
    if (n <= 0) return;
    if (adds) {
        float old[4];
        load_some(old, to, n, wide);
        UNROLL
        for (int e = 0; e < 4; e++) y[e] = old[e] + x[e];
    }
    store_some(to, y, n, wide);
}

/* ---- which scores -----------------------------------------------------------------------------
 */

/* The blocks of a call: a piece of LINES lines of each head. Pieces that have the most to do come
 * first, of as many heads as have room in the GPU's cache. */
struct block_order {
    int64_t heads, pieces, group; /* heads: of all rows */

    __device__ __forceinline__ void find(int64_t block, int64_t *head, int64_t *piece) const
    {
        int64_t rest = block, at = take(&rest, group * pieces);
        const int64_t left = heads - rest * group, n = left < group ? left : group;
        *head = rest * group + take(&at, n);
        *piece = at;
    }
};

static __device__ __forceinline__ int64_t quotient(int64_t i, int64_t n)
{
    take(&i, n);
    return i;
}

/* A head of queries, or one of keys, of one row. */
struct head_place {
    int64_t row, o, head;

    __device__ __forceinline__ head_place(int64_t number, int64_t heads, int64_t outer)
    {
        head = take(&number, heads);
        o = take(&number, outer);
        row = number;
    }
};

/* Scores of queries of one head. A thread has R queries from t on and four keys from j on; bit 4 i
 * + e says something of query t + i and key j + e. Bits are found one query after the other before
 * there are any products, so that registers are left for those. */
template <class T> struct score_tile {
    const attention<T> &a;
    int64_t row, head;  /* the number of the head in its row */
    int64_t first_line; /* that of the head's first query */

    __device__ __forceinline__ score_tile(const attention<T> &of, int64_t in_row, int64_t o,
                                          int64_t in_o)
        : a(of), row(in_row), head(o * of.heads + in_o), first_line(head * of.t)
    {
    }

    /* Where the masks of the head begin. */
    __device__ __forceinline__ void find_masks(const T *(&mask)[MASKS_MAX]) const
    {
        const cuda_masks<T> &m = a.masks;
        int64_t place[MASKS_MAX] = { 0, 0, 0, 0 }, rest = head;
        for (int d = m.rank - 3; m.n && d >= 0; d--) {
            const int64_t k = take(&rest, m.dim[d]);
            UNROLL
            for (int i = 0; i < MASKS_MAX; i++)
                if (i < m.n) place[i] += k * m.mask[i].step[d];
        }
        UNROLL
        for (int i = 0; i < MASKS_MAX; i++)
            mask[i] = i < m.n ? m.mask[i].at + row * m.mask[i].row + place[i] : nullptr;
    }

    /* Which of four keys query t sees. */
    __device__ __forceinline__ unsigned seen_by(int64_t t, int64_t j,
                                                const T *const (&mask)[MASKS_MAX]) const
    {
        const cuda_masks<T> &m = a.masks;
        int64_t first, end;
        unsigned bits = 0;
        if (t >= a.t) return 0;
        m.range(t, a.s, &first, &end);
        UNROLL
        for (int e = 0; e < 4; e++) bits |= (unsigned)(j + e >= first && j + e < end) << e;
        UNROLL
        for (int k = 0; k < MASKS_MAX; k++) {
            if (k >= m.n) continue;
            const T *at = mask[k] + t * m.mask[k].step[m.rank - 2];
            UNROLL
            for (int e = 0; e < 4; e++)
                if (bits >> e & 1 && !(to_f(at[(j + e) * m.mask[k].step[m.rank - 1]]) > 0.5f))
                    bits &= ~(1u << e);
        }
        return bits;
    }

    /* Which keys a query sees. */
    template <int R> __device__ __forceinline__ unsigned seen(int64_t t, int64_t j) const
    {
        const T *mask[MASKS_MAX];
        unsigned all = 0;
        find_masks(mask);
        UNROLL_1
        for (int i = 0; i < R; i++) all |= seen_by(t + i, j, mask) << 4 * i;
        return all;
    }

    /* Which weights dropout leaves. */
    template <int R> __device__ __forceinline__ unsigned kept(int64_t t, int64_t j) const
    {
        unsigned all = 0;
        if (!a.drops) return ~0u;
        UNROLL_1
        for (int i = 0; i < R; i++) {
            const unsigned draw = (unsigned)((first_line + t + i) * a.s + j);
            unsigned w[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
            cuda_philox(w, a.chance, row, draw / 4);
            if (draw % 4) cuda_philox(w + 4, a.chance, row, draw / 4 + 1);
            UNROLL
            for (int e = 0; e < 6; e++) w[e] = draw & 1 ? w[e + 1] : w[e];
            UNROLL
            for (int e = 0; e < 4; e++) w[e] = draw & 2 ? w[e + 2] : w[e];
            UNROLL
            for (int e = 0; e < 4; e++) all |= (unsigned)(w[e] >> 8 >= a.least) << (4 * i + e);
        }
        return all;
    }
    /* What those are multiplied by. */
    __device__ __forceinline__ float factor() const
    {
        return a.drops ? a.kept : 1;
    }

    /* Products of query t become scores, of which the four bits tell; -infinity: not seen, or there
     * is no such query or key. */
    __device__ __forceinline__ void scores(float (&x)[4], int64_t t, int64_t j, unsigned bits) const
    {
        UNROLL
        for (int e = 0; e < 4; e++) x[e] *= a.scale;
        if ((bits & 15) == 15) return;
        const int keys = a.less > 0 && t < a.t ? (int)(a.s - j < 4 ? a.s - j : 4) : 0;
        UNROLL
        for (int e = 0; e < 4; e++)
            if (!(bits >> e & 1)) x[e] = e < keys ? x[e] - a.less : -INFINITY;
    }
};

/* Whether queries [t, last] see all keys [j, end), so that nobody has to ask; and whether they see
 * none. */
template <class T>
static __device__ __forceinline__ bool sees_all(const attention<T> &a, int64_t t, int64_t last,
                                                int64_t j, int64_t end)
{
    int64_t low, high, ignored;
    if (a.masks.n || last >= a.t || end > a.s) return false;
    a.masks.range(t, a.s, &ignored, &high);
    a.masks.range(last, a.s, &low, &ignored);
    return low <= j && end <= high;
}

template <class T>
static __device__ __forceinline__ bool sees_none(const attention<T> &a, int64_t t, int64_t last,
                                                 int64_t j, int64_t end)
{
    int64_t low, high, ignored;
    if (a.less > 0 || a.uniform) return false; /* what is not seen has weights */
    a.masks.range(t, a.s, &low, &ignored);
    a.masks.range(last < a.t ? last : a.t - 1, a.s, &ignored, &high);
    return high <= j || low >= end;
}

#endif
