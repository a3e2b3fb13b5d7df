/* The gradient of an image whose pixels are seen by pixels of another, up to four by each, wherever
 * a draw has put them. What is seen is sorted by the pixels, and stays in the order of those that
 * see it, so a pixel adds up its gradient in one order, and that is the host's. Some rows at a
 * time, so that scratch stays small. */
#ifndef KEEL_OPS_CUDA_SCATTER_H
#define KEEL_OPS_CUDA_SCATTER_H
#include "ops/cuda/_sort.h"

#ifdef __CUDACC__
static const int64_t SCATTER_SOME = 1 << 22; /* keys that are sorted at a time */
#else
static const int64_t SCATTER_SOME = 400; /* the emulator takes several turns, too */
#endif

struct scatter_seen { /* pixels of the row; -1: none */
    int64_t at[4];
    float share[4];
};

struct scatter_shape {
    int64_t from, to, channels; /* pixels of a row that see, and that are seen */
    int taps;                   /* that one sees: 1 or 4 */
};

struct scatter_room {
    uint64_t *keys;
    float *share;
};

/* Rows that are done at a time. */
static inline int64_t scatter_rows(const scatter_shape &s, int64_t rows)
{
    const int64_t some = SCATTER_SOME / (s.from * s.taps);
    return rows < some ? rows : some > 0 ? some : 1;
}

static inline bool scatter_fits(const scatter_shape &s)
{
    return s.from <= UINT32_MAX / 4 && s.to < UINT32_MAX;
}

/* Bytes of scratch. */
static inline int64_t scatter_scratch(const scatter_shape &s, int64_t rows)
{
    const int64_t keys = scatter_rows(s, rows) * s.from * s.taps;
    return sort_scratch(keys) + keys * (int64_t)sizeof(float);
}

/* look(row, pixel, seen) says what a pixel of a row of the call sees. */
template <class LOOK>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    scatter_keys_kernel(const scatter_room r, const scatter_shape s, int64_t first, int64_t rows,
                        const LOOK look)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < rows * s.from;
         t += step) {
        int64_t row = t;
        const int64_t i = take(&row, s.from);
        scatter_seen seen;
        look(first + row, i, &seen);
        for (int p = 0; p < 4; p++) {
            if (p >= s.taps) break;
            const int64_t tap = i * s.taps + p, at = row * s.from * s.taps + tap;
            const uint64_t key = seen.at[p] < 0 ? UINT32_MAX : (uint64_t)seen.at[p];
            r.keys[at] = key << 32 | (uint64_t)tap;
            r.share[at] = seen.share[p];
        }
    }
}

/* dx, g: of the first of the rows. */
template <class T, class G>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    scatter_sum_kernel(T *dx, const G *g, const uint64_t *keys, const float *share,
                       const scatter_shape s, int64_t rows, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, taps = s.from * s.taps;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < rows * s.to; t += step) {
        int64_t row = t;
        const uint64_t own = (uint64_t)take(&row, s.to);
        const uint64_t *key = keys + row * taps;
        const int64_t begin = sort_smaller(key, taps, own << 32);
        for (int64_t k = 0; k < s.channels; k++) {
            T *to = dx + t * s.channels + k;
            float sum = adds ? to_f(*to) : 0;
            for (int64_t i = begin; i < taps && key[i] >> 32 == own; i++) {
                const unsigned tap = (unsigned)key[i];
                const int64_t pixel = row * s.from + tap / (unsigned)s.taps;
                sum += times(share[row * taps + tap], to_f(g[pixel * s.channels + k]));
            }
            *to = to_value<T>(sum);
        }
    }
}

/* dx = what flows back of g, or += */
template <class T, class G, class LOOK>
static void scatter(const keel_call *c, void *scratch, T *dx, const G *g, const scatter_shape &s,
                    bool adds, const LOOK &look)
{
    const int64_t some = scatter_rows(s, c->rows), keys = some * s.from * s.taps;
    uint64_t *at = static_cast<uint64_t *>(scratch);
    const scatter_room r = { at, reinterpret_cast<float *>(at + 2 * keys) };
    for (int64_t first = 0; first < c->rows; first += some) {
        const int64_t rows = c->rows - first < some ? c->rows - first : some;
        cuda_launch(c, scatter_keys_kernel<LOOK>, cuda_blocks(rows * s.from), CUDA_THREADS, 0, r, s,
                    first, rows, look);
        const uint64_t *sorted = sort_keys(c, r.keys, s.from * s.taps, rows);
        cuda_launch(c, scatter_sum_kernel<T, G>, cuda_blocks(rows * s.to), CUDA_THREADS, 0,
                    dx + first * s.to * s.channels, g + first * s.from * s.channels, sorted,
                    r.share, s, rows, adds);
    }
}

#endif
