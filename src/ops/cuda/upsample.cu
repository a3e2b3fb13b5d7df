/* See ops/upsample.c. A thread has neighbouring elements of the output or, on the way back, of the
 * input, and adds what comes back to them in the order of the output. */
#include "ops/cuda/_packs.h"

namespace
{
struct stretch {
    int64_t n, inner, groups, factor; /* places of the input along the axis; elements of a place,
                                         and threads that share them */
    int64_t lines;                    /* of n places, of the call */
    bool between;
};

struct place { /* output o is (1 - share) first + share second */
    int64_t first, second;
    float share;
};

__device__ __forceinline__ place place_of(const stretch &s, int64_t o)
{
    if (!s.between) {
        take(&o, s.factor);
        return { o, o, 0 };
    }
    const double at = ((double)o + 0.5) / (double)s.factor - 0.5, first = floor(at);
    return { first < 0 ? 0 : (int64_t)first,
             (int64_t)first + 1 < s.n ? (int64_t)first + 1 : s.n - 1, (float)(at - first) };
}

/* Thread t of [lines, places, groups]. */
struct spot {
    int64_t line, place, k, n; /* k: its first element of the place; n: how many there are */

    __device__ __forceinline__ spot(const stretch &s, int64_t t, int64_t places, int each)
    {
        k = take(&t, s.groups) * each;
        n = s.inner - k;
        place = take(&t, places);
        line = t;
    }
};

template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const stretch s, int64_t all)
{
    const int N = EACH<T>;
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, places = s.n * s.factor;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const spot at(s, t, places, N);
        const place p = place_of(s, at.place);
        const T *line = x + at.line * s.n * s.inner + at.k;
        float a[N], b[N];
        unpack<N>(a, load_place<WIDE, N>(line + p.first * s.inner, at.n));
        if (p.share > 0) {
            unpack<N>(b, load_place<WIDE, N>(line + p.second * s.inner, at.n));
            UNROLL
            for (int e = 0; e < N; e++) a[e] += p.share * (b[e] - a[e]);
        }
        store_place<WIDE, N>(y + (at.line * places + at.place) * s.inner + at.k, a, at.n);
    }
}

template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *dy, const stretch s, int64_t all, bool adds)
{
    const int N = EACH<T>;
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, places = s.n * s.factor;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const spot at(s, t, s.n, N);
        const int64_t reach = s.between ? 1 : 0, far = (at.place + 1 + reach) * s.factor;
        const int64_t end = far < places ? far : places;
        const T *line = dy + at.line * places * s.inner + at.k;
        T *to = dx + (at.line * s.n + at.place) * s.inner + at.k;
        float sum[N] = {}, g[N];
        if (adds) unpack<N>(sum, load_place<WIDE, N>(to, at.n));
        for (int64_t o = at.place > reach ? (at.place - reach) * s.factor : 0; o < end; o++) {
            const place p = place_of(s, o);
            const bool first = p.first == at.place, second = p.second == at.place && p.share > 0;
            if (!first && !second) continue;
            unpack<N>(g, load_place<WIDE, N>(line + o * s.inner, at.n));
            UNROLL
            for (int e = 0; e < N; e++) {
                if (first) sum[e] += (1 - p.share) * g[e];
                if (second) sum[e] += p.share * g[e];
            }
        }
        store_place<WIDE, N>(to, sum, at.n);
    }
}

stretch stretch_of(const keel_call *c, int each)
{
    const keel_upsample_args *a = cuda_args<keel_upsample_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    const int axis = (int)(a->axis < 0 ? a->axis + in.rank : a->axis);
    stretch s = { in.dim[axis], 1, 1, a->factor, c->rows, a->between };
    for (int d = axis + 1; d < in.rank; d++) s.inner *= in.dim[d];
    for (int d = 0; d < axis; d++) s.lines *= in.dim[d];
    s.groups = (s.inner + each - 1) / each;
    return s;
}

template <class T> void forward(const keel_call *c)
{
    const stretch s = stretch_of(c, EACH<T>);
    const int64_t all = s.lines * s.n * s.factor * s.groups;
    const T *x = cuda_in<T>(c, 0);
    T *y = cuda_out<T>(c);
    const bool wide = s.inner % EACH<T> == 0 && fits_pack<EACH<T>>(x) && fits_pack<EACH<T>>(y);
    cuda_launch(c, wide ? forward_kernel<T, true> : forward_kernel<T, false>, cuda_blocks(all),
                CUDA_THREADS, 0, y, x, s, all);
}

template <class T> void backward(const keel_call *c)
{
    const stretch s = stretch_of(c, EACH<T>);
    const int64_t all = s.lines * s.n * s.groups;
    const T *dy = cuda_out_grad<T>(c);
    T *dx = cuda_in_grad<T>(c, 0);
    const bool wide = s.inner % EACH<T> == 0 && fits_pack<EACH<T>>(dx) && fits_pack<EACH<T>>(dy);
    if (dx)
        cuda_launch(c, wide ? backward_kernel<T, true> : backward_kernel<T, false>,
                    cuda_blocks(all), CUDA_THREADS, 0, dx, dy, s, all, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(upsample) = { .op = &keel_op_upsample,
                          .name = "cuda",
                          .prepare = cuda_always,
                          .run = { forward<float>, backward<float> },
                          .narrow = { forward<bf16>, backward<bf16> },
                          .half = { forward<f16>, backward<f16> } };
