/* See ops/fourier.c. */
#include "ops/cuda/_fourier.h"
extern "C" {
#include "ops/fourier.h"
}

namespace
{
struct signals {
    int64_t lines, in, out, size; /* places of a line of the input, and of the output */
    bool from_reals, to_reals;

    /* Whether frequency k stands for two of a real signal. */
    __device__ __forceinline__ bool twice(int64_t k) const
    {
        return k > 0 && 2 * k != size;
    }
};

enum what { COMPLEX, CONJUGATE, REALS, HERMITIAN };

/* Place t of a line that is transformed: of n numbers that are complex, their conjugates, real, or
 * the conjugates of the frequencies of reals, from 0 on. */
template <what IS, class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    load_kernel(complex_number *to, const T *x, int64_t lines, int64_t n, const signals s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * s.size;
         t += step) {
        int64_t line = t;
        const int64_t i = take(&line, s.size);
        const bool mirrored = IS == HERMITIAN && 2 * i > s.size;
        const int64_t k = mirrored ? s.size - i : i;
        complex_number v = { 0, 0 };
        if (k < n && IS == REALS) {
            v.re = to_f(x[line * n + k]);
        } else if (k < n) {
            const T *from = x + 2 * (line * n + k);
            v = { to_f(from[0]), to_f(from[1]) };
            if (IS == CONJUGATE || (IS == HERMITIAN && !mirrored)) v.im = -v.im;
            if (IS == HERMITIAN && !s.twice(k)) v.im = 0;
        }
        to[t] = v;
    }
}

template <class T> __device__ __forceinline__ void put(T *to, double g, bool adds)
{
    *to = to_value<T>((float)(adds ? to_f(*to) + g : g));
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const complex_number *from, int64_t lines, const signals s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * s.out;
         t += step) {
        int64_t line = t;
        const int64_t i = take(&line, s.out);
        const complex_number v = from[line * s.size + i];
        if (s.to_reals) {
            y[t] = to_value<T>((float)(v.re / (double)s.size));
        } else {
            put(y + 2 * t, v.re, false);
            put(y + 2 * t + 1, v.im, false);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const complex_number *from, int64_t lines, const signals s, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * s.in;
         t += step) {
        int64_t line = t;
        const int64_t i = take(&line, s.in);
        const bool there = i < (s.to_reals ? s.size / 2 + 1 : s.size);
        complex_number v = { 0, 0 };
        if (there) v = from[line * s.size + i];
        if (s.to_reals && there) {
            const double share = (s.twice(i) ? 2 : 1) / (double)s.size;
            v = { share * v.re, s.twice(i) ? share * v.im : 0 };
        } else {
            v.im = -v.im;
        }
        if (s.from_reals) {
            put(dx + t, v.re, adds);
        } else {
            put(dx + 2 * t, v.re, adds);
            put(dx + 2 * t + 1, v.im, adds);
        }
    }
}

signals signals_of(const keel_node *n, int64_t rows)
{
    const keel_fourier_args *a = static_cast<const keel_fourier_args *>(n->args);
    const keel_shape &in = n->in[0].shape, &out = n->out[0].shape;
    signals s = {};
    s.in = in.dim[in.rank - (a->from_reals ? 1 : 2)];
    s.out = out.dim[out.rank - (a->to_reals ? 1 : 2)];
    s.size = a->size;
    s.from_reals = a->from_reals;
    s.to_reals = a->to_reals;
    s.lines = rows * keel_row_count(&n->in[0]) / (s.in * (a->from_reals ? 1 : 2));
    return s;
}

/* Lines that are transformed at a time. */
int64_t some_of(const signals &s)
{
    const int64_t some = FOURIER_SOME / s.size;
    return s.lines < some ? s.lines : some > 0 ? some : 1;
}

template <what IS, class T>
complex_number *transform(const keel_call *c, const fourier_room &r, const T *x, int64_t lines,
                          int64_t n, const signals &s)
{
    cuda_launch(c, load_kernel<IS, T>, cuda_blocks(lines * s.size), CUDA_THREADS, 0, r.from, x,
                lines, n, s);
    return fourier_transform(c, r, s.size, lines);
}

template <class T> void forward(const keel_call *c)
{
    const signals s = signals_of(c->node, c->rows);
    const int64_t some = some_of(s);
    const fourier_room r = fourier_begin(c, c->scratch, s.size, some);
    const T *x = cuda_in<T>(c, 0);
    T *y = cuda_out<T>(c);
    for (int64_t first = 0; first < s.lines; first += some) {
        const int64_t lines = s.lines - first < some ? s.lines - first : some;
        const T *own = x + first * s.in * (s.from_reals ? 1 : 2);
        const complex_number *to = s.to_reals     ? transform<HERMITIAN>(c, r, own, lines, s.in, s)
                                   : s.from_reals ? transform<REALS>(c, r, own, lines, s.in, s)
                                                  : transform<COMPLEX>(c, r, own, lines, s.in, s);
        cuda_launch(c, forward_kernel<T>, cuda_blocks(lines * s.out), CUDA_THREADS, 0,
                    y + first * s.out * (s.to_reals ? 1 : 2), to, lines, s);
    }
}

template <class T> void backward(const keel_call *c)
{
    const signals s = signals_of(c->node, c->rows);
    const int64_t some = some_of(s);
    const T *dy = cuda_out_grad<T>(c);
    T *dx = cuda_in_grad<T>(c, 0);
    if (!dx) return;
    const fourier_room r = fourier_begin(c, c->scratch, s.size, some);
    for (int64_t first = 0; first < s.lines; first += some) {
        const int64_t lines = s.lines - first < some ? s.lines - first : some;
        const T *own = dy + first * s.out * (s.to_reals ? 1 : 2);
        const complex_number *to = s.to_reals ? transform<REALS>(c, r, own, lines, s.out, s)
                                              : transform<CONJUGATE>(c, r, own, lines, s.out, s);
        cuda_launch(c, backward_kernel<T>, cuda_blocks(lines * s.in), CUDA_THREADS, 0,
                    dx + first * s.in * (s.from_reals ? 1 : 2), to, lines, s, c->in_adds[0]);
    }
}

keel_status prepare(keel_prepare *p)
{
    const signals s = signals_of(p->node, p->rows);
    return cuda_prepare(p, fourier_scratch(s.size, some_of(s)));
}
} // namespace

CUDA_KERNEL(fourier) = { .op = &keel_op_fourier,
                         .name = "cuda",
                         .prepare = prepare,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
