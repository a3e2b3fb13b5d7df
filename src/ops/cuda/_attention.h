/* Attention in tiles (Dao et al. 2022): what the kernels of dot_product_attention share. A block
 * has OWN queries of one head, a warp each, and goes over the keys 32 at a time, a lane each; where
 * gradients of keys and values are made it is the other way round. Tiles lie in shared memory as
 * lines of one more number than they have, so that lanes reading one column meet no bank twice. */
#ifndef KEEL_OPS_CUDA_ATTENTION_H
#define KEEL_OPS_CUDA_ATTENTION_H
#include "ops/cuda/_chance.h"
#include "ops/cuda/_masks.h"
#include "ops/cuda/_move.h"
extern "C" {
#include "ops/dot_product_attention.h"
}

static const int OWN = CUDA_THREADS / GPU_WARP, TILE = GPU_WARP;

template <class T> struct attention {
    const T *q, *k, *v;
    int64_t rows, outer, t, s, heads, shared, d, e; /* e: numbers of a value */
    int64_t lines;                                  /* of scores in a row */
    int64_t share;                                  /* heads that have the same keys */
    bool wide_d, wide_e;                            /* load4 may be used: of lines of d, of e */
    float scale, less;
    bool uniform, drops;
    unsigned least; /* of dropout */
    float kept;
    cuda_chance chance;
    cuda_masks<T> masks;

    /* What the arguments let queries from t to last see, of all keys. */
    __device__ __forceinline__ void range(int64_t from, int64_t last, int64_t *first,
                                          int64_t *end) const
    {
        int64_t ignored;
        *first = 0;
        *end = s;
        if (less > 0) return; /* every key has a weight */
        masks.range(from, s, first, &ignored);
        masks.range(last < t ? last : t - 1, s, &ignored, end);
    }
    /* The score of key j, from its product with the query; -infinity: it is not seen. */
    __device__ __forceinline__ float score(float product, int64_t row, int64_t line,
                                           int64_t j) const
    {
        int64_t first, end;
        const float x = product * scale;
        masks.range(line % t, s, &first, &end);
        if (j >= first && j < end && masks.let(row, line * s + j)) return x;
        return less > 0 ? x - less : -INFINITY;
    }
    /* What dropout multiplies the weight of key j by. */
    __device__ __forceinline__ float factor(int64_t row, int64_t line, int64_t j) const
    {
        if (!drops) return 1;
        const unsigned draw = (unsigned)(line * s + j);
        unsigned word[4];
        cuda_philox(word, chance, row, draw / 4);
        unsigned own = word[0];
        for (int i = 1; i < 4; i++) own = draw % 4 == (unsigned)i ? word[i] : own;
        return own >> 8 >= least ? kept : 0;
    }
    __device__ __forceinline__ int64_t query_at(int64_t row, int64_t line) const
    {
        const int64_t o = row * outer + line / t / heads;
        return (o * t + line % t) * heads + line / t % heads;
    }
    __device__ __forceinline__ int64_t key_at(int64_t row, int64_t o, int64_t j, int64_t head) const
    {
        return ((row * outer + o) * s + j) * shared + head;
    }
};

/* Copies at most `count` lines of n numbers, `apart` each, into tile lines of n + 1.
 * All threads of a block call it, between two barriers. */
template <class T>
static __device__ __forceinline__ void fill_tile(float *tile, const T *from, int64_t n,
                                                 int64_t apart, int64_t count, int lines)
{
    const int width = (int)n, all = (count < lines ? (int)count : lines) * width;
    for (int i = (int)threadIdx.x; i < all; i += CUDA_THREADS) {
        const int line = i / width, k = i - line * width;
        tile[line * (width + 1) + k] = to_f(from[line * apart + k]);
    }
}

static __device__ __forceinline__ float tile_product(const float *a, const float *b, int64_t n)
{
    float sum = 0;
    for (int k = 0; k < (int)n; k++) sum += a[k] * b[k];
    return sum;
}

/* sum[r] += the weights of the lanes times column lane + 32 r of the tile's first lines. */
template <int R>
static __device__ __forceinline__ void add_lines(float (&sum)[R], float weight, const float *tile,
                                                 int64_t n, int64_t lines)
{
    const int lane = (int)threadIdx.x % GPU_WARP, width = (int)n;
    const int end = lines < TILE ? (int)lines : TILE;
    for (int j = 0; j < end; j++) {
        const float w = __shfl_sync(GPU_ALL, weight, j);
        for (int r = 0; r < R; r++)
            if (lane + r * GPU_WARP < width)
                sum[r] += w * tile[j * (width + 1) + lane + r * GPU_WARP];
    }
}

/* Shared memory of a block: two tiles, and OWN lines of each. */
static inline size_t attention_shared(int64_t d, int64_t e)
{
    return sizeof(float) * (size_t)((TILE + OWN) * (d + 1 + e + 1));
}

struct attention_room {
    float *a, *b;         /* tiles of lines of d, and of e */
    float *own_a, *own_b; /* lines of the block's own */

    __device__ __forceinline__ attention_room(float *room, int64_t d, int64_t e)
        : a(room), b(room + TILE * (d + 1)), own_a(b + TILE * (e + 1)), own_b(own_a + OWN * (d + 1))
    {
    }
};

#endif
