/* See ops/max_unpool2d.c. Forward notes in scratch which tap of each window won, as max_pool2d does
 * for its backward, which then is what is left to do: otherwise each pixel would look for the
 * winners of all windows that have it. */
#include "ops/cuda/_max_pool.h"
#include "ops/cuda/_move.h"

namespace
{
/* What windows read of dy, each at the pixel that won: 0 if none did. */
template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    at_winners_kernel(T *dgrad, const T *dy, const T *x, const pool_shape s, int64_t all, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const pool_place at(s, t, s.h.out, s.w.out);
        const int64_t n = s.c - at.channel;
        const int64_t row = at.row * s.h.in * s.w.in * s.c + at.channel;
        T *to = dgrad + ((at.row * s.h.out + at.h) * s.w.out + at.w) * s.c + at.channel;
        float best[FOUR], g[FOUR] = {};
        int won[FOUR];
        if (adds) unpack<FOUR>(g, load_place<WIDE, FOUR>(to, n));
        max_of_window<WIDE>(best, won, x + row, s, at, n);
        UNROLL
        for (int e = 0; e < FOUR; e++) {
            const unsigned i = (unsigned)won[e] / (unsigned)s.w.size;
            const unsigned j = (unsigned)won[e] - i * (unsigned)s.w.size;
            const int64_t pixel = (s.h.first(at.h) + i) * s.w.in + s.w.first(at.w) + j;
            if (e < n && won[e] != NOBODY) g[e] += to_f(dy[row + pixel * s.c + e]);
        }
        store_place<WIDE, FOUR>(to, g, n);
    }
}

pool_shape shape_of(const keel_call *c)
{
    return pool_shape_between(c->node->in[0], c->node->in[1], *cuda_args<keel_pool2d_args>(c),
                              c->rows);
}

template <class T, class K> void forward_as(const keel_call *c)
{
    const pool_shape s = shape_of(c);
    K *taps = static_cast<K *>(c->scratch);
    max_pool(c, s, static_cast<T *>(nullptr), taps, cuda_in<T>(c, 0));
    max_pool_back(c, s, cuda_out<T>(c), cuda_in<T>(c, 1), static_cast<const K *>(taps), false);
}

template <class T> void forward(const keel_call *c)
{
    max_pool_has_many_taps(*cuda_args<keel_pool2d_args>(c)) ? forward_as<T, int32_t>(c)
                                                            : forward_as<T, uint8_t>(c);
}

template <class T> void backward(const keel_call *c)
{
    const pool_shape s = shape_of(c);
    const int64_t all = s.rows * s.h.out * s.w.out * s.groups;
    T *dgrad = cuda_in_grad<T>(c, 1);
    const T *dy = cuda_out_grad<T>(c), *x = cuda_in<T>(c, 0);
    const bool wide = s.c % 4 == 0 && wide4(dgrad) && wide4(x);
    no_gradient<T>(c, 0);
    if (dgrad)
        cuda_launch(c, wide ? at_winners_kernel<T, true> : at_winners_kernel<T, false>,
                    cuda_blocks(all), CUDA_THREADS, 0, dgrad, dy, x, s, all, c->in_adds[1]);
}

keel_status prepare(keel_prepare *p)
{
    const keel_pool2d_args &a = *static_cast<const keel_pool2d_args *>(p->node->args);
    const int64_t tap = max_pool_has_many_taps(a) ? sizeof(int32_t) : sizeof(uint8_t);
    const int64_t windows = p->rows * keel_row_count(&p->node->in[1]);
    return cuda_prepare(p, p->pass == KEEL_FORWARD ? windows * tap : 0);
}
} // namespace

CUDA_KERNEL(max_unpool2d) = { .op = &keel_op_max_unpool2d,
                              .name = "cuda",
                              .prepare = prepare,
                              .run = { forward<float>, backward<float> },
                              .narrow = { forward<bf16>, backward<bf16> },
                              .half = { forward<f16>, backward<f16> } };
