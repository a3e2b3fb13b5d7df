/* Elements that go to other places: a box of elements that has steps in the array it comes from and
 * in the one it goes to. Dims that go on in both are joined first, so that most boxes have two or
 * three, and four neighbours move at once where the last dim allows it. */
#ifndef KEEL_OPS_CUDA_MOVE_H
#define KEEL_OPS_CUDA_MOVE_H
#include "ops/cuda/_kernel.h"

enum { MOVE_DIMS = KEEL_RANK_MAX + 1 }; /* those of a row, and the rows */

struct move_box {
    int dims;                                               /* the last is the innermost */
    int64_t dim[MOVE_DIMS], from[MOVE_DIMS], to[MOVE_DIMS]; /* steps in elements */
    int64_t from_begin, to_begin, count;
};

/* The box of whole rows; steps follow by move_add, from the outermost dim on. */
static inline move_box move_rows(int64_t rows, int64_t from_row, int64_t to_row)
{
    move_box b = {};
    b.dims = 1;
    b.dim[0] = b.count = rows;
    b.from[0] = from_row;
    b.to[0] = to_row;
    return b;
}

static inline void move_add(move_box *b, int64_t n, int64_t from, int64_t to)
{
    int last = b->dims - 1;
    b->count *= n;
    if (n == 1) return;
    if (b->from[last] == n * from && b->to[last] == n * to) {
        b->dim[last] *= n; /* goes on in both */
    } else {
        if (b->dim[last] != 1) last = b->dims++;
        b->dim[last] = n;
    }
    b->from[last] = from;
    b->to[last] = to;
}

/* How many neighbours move at once: 4 or 1. */
template <class T> static inline int move_width(const move_box &b, const T *to, const T *from)
{
    const int last = b.dims - 1;
    bool four = b.from[last] == 1 && b.to[last] == 1 && b.dim[last] % 4 == 0 &&
                b.from_begin % 4 == 0 && b.to_begin % 4 == 0 && wide4(to) && wide4(from);
    for (int d = 0; d < last; d++) four = four && b.from[d] % 4 == 0 && b.to[d] % 4 == 0;
    return four ? 4 : 1;
}

template <class T>
static __device__ __forceinline__ void move_put(T *to, const T *from, int width, bool adds)
{
    if (width == 4 && adds) {
        float x[4], y[4];
        load4(x, from);
        load4(y, to);
        for (int e = 0; e < 4; e++) y[e] += x[e];
        store4(to, y);
    } else if (width == 4) {
        gpu_aligned(from, sizeof(four<T>));
        gpu_aligned(to, sizeof(four<T>));
        *reinterpret_cast<four<T> *>(to) = *reinterpret_cast<const four<T> *>(from);
    } else {
        *to = adds ? to_value<T>(to_f(*to) + to_f(*from)) : *from;
    }
}

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    move_kernel(T *to, const T *from, const move_box b, int width, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = b.count / width;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t rest = t, x = b.from_begin, y = b.to_begin;
        for (int d = b.dims - 1; d > 0; d--) {
            const int64_t by = d == b.dims - 1 ? width : 1, k = take(&rest, b.dim[d] / by) * by;
            x += k * b.from[d];
            y += k * b.to[d];
        }
        rest *= b.dims == 1 ? width : 1;
        move_put(to + y + rest * b.to[0], from + x + rest * b.from[0], width, adds);
    }
}

/* The box of a row is moved, or added. */
template <class T>
static void move(const keel_call *c, T *to, const T *from, const move_box &b, bool adds)
{
    const int width = move_width(b, to, from);
    cuda_launch(c, move_kernel<T>, cuda_blocks(b.count / width), CUDA_THREADS, 0, to, from, b,
                width, adds);
}

/* ---- places that come from nowhere ------------------------------------------------------------
 */

/* What one dim of an array is made of: place k of it is place (k - begin) / step of the other
 * array, if that is one of `count` places, and has no rest. */
struct pick_dim {
    int64_t dim, begin, step, count, from;
};

struct pick_box {
    int dims;
    pick_dim d[MOVE_DIMS];
    int64_t all;
};

static inline pick_box pick_rows(int64_t rows, int64_t from_row)
{
    pick_box b = {};
    b.dims = 1;
    b.d[0] = { rows, 0, 1, rows, from_row };
    b.all = rows;
    return b;
}

/* A dim behind those that are there; `from` is its step in the other array. */
static inline void pick_add(pick_box *b, const pick_dim &d)
{
    pick_dim *last = &b->d[b->dims - 1];
    b->all *= d.dim;
    const bool whole = d.begin == 0 && d.step == 1 && d.count == d.dim;
    if (whole && last->step == 1 && last->from == d.dim * d.from)
        *last = { last->dim * d.dim, last->begin * d.dim, 1, last->count * d.dim, d.from };
    else
        b->d[b->dims++] = d;
}

/* to[k] = of[k], or `none` where there is no such place; or += */
template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    pick_kernel(T *to, const T *of, const pick_box b, int width, float none, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = b.all / width;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t rest = t, at = 0;
        bool there = true;
        for (int i = b.dims - 1; i >= 0; i--) {
            const pick_dim &d = b.d[i];
            const int64_t by = i == b.dims - 1 ? width : 1;
            const int64_t k = (i ? take(&rest, d.dim / by) : rest) * by - d.begin;
            const int64_t place = d.step == 1 ? k : k / d.step;
            there = there && place * d.step == k && place >= 0 && place < d.count;
            at += place * d.from;
        }
        T *y = to + t * width;
        if (there)
            move_put(y, of + at, width, adds);
        else if (!adds)
            for (int e = 0; e < width; e++) y[e] = to_value<T>(none);
    }
}

template <class T>
static void pick(const keel_call *c, T *to, const T *of, const pick_box &b, float none, bool adds)
{
    const pick_dim &last = b.d[b.dims - 1];
    bool four = last.step == 1 && last.from == 1 && last.dim % 4 == 0 && last.begin % 4 == 0 &&
                last.count % 4 == 0 && wide4(to) && wide4(of);
    for (int i = 0; i + 1 < b.dims; i++) four = four && b.d[i].from % 4 == 0;
    const int width = four ? 4 : 1;
    cuda_launch(c, pick_kernel<T>, cuda_blocks(b.all / width), CUDA_THREADS, 0, to, of, b, width,
                none, adds);
}

/* ---- all of an array --------------------------------------------------------------------------
 */

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS) fill_kernel(T *to, float with, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < n; i += step)
        to[i] = to_value<T>(with);
}

template <class T> static void fill(const keel_call *c, T *to, float with, int64_t n)
{
    cuda_launch(c, fill_kernel<T>, cuda_blocks(n), CUDA_THREADS, 0, to, with, n);
}

/* The gradient of an input that has none, such as a mask. */
template <class T> static void no_gradient(const keel_call *c, int k)
{
    T *dx = cuda_in_grad<T>(c, k);
    if (dx && !c->in_adds[k]) fill(c, dx, 0, c->rows * keel_row_count(&c->node->in[k]));
}

/* The members of a kernel whose passes are forward<T> and backward<T>. */
#define MOVE_KERNEL(stem)                                                                          \
    CUDA_KERNEL(stem) = { .op = &keel_op_##stem,                                                   \
                          .name = "cuda",                                                          \
                          .prepare = cuda_always,                                                  \
                          .run = { forward<float>, backward<float> },                              \
                          .narrow = { forward<bf16>, backward<bf16> },                             \
                          .half = { forward<f16>, backward<f16> } }

#endif
