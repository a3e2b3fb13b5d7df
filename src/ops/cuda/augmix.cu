/* See ops/augmix.c. A thread has a row's shares, and then an element. */
#include "ops/cuda/_chance.h"
#include <math.h>
extern "C" {
#include "ops/augmix.h"
}

namespace
{
const int IN_MAX = 65;                 /* an image and its chains */
const unsigned TRIES = 20, DRAWS = 64; /* draws of one number; each try takes three */

template <class P> struct each_of { /* of an image and its chains */
    P *at[IN_MAX];
    bool adds[IN_MAX];
};

struct image {
    double alpha;
    unsigned first;
    cuda_chance chance;
    int64_t rows, count; /* count: of a row */
    int n;               /* inputs */
    float low, high;
};

/* As log_gamma_draw. */
__device__ double log_gamma_draw(const image &n, int64_t row, unsigned k)
{
    const keel_range unit = { 0, 1 };
    const unsigned first = n.first + k * DRAWS;
    const double d = n.alpha + (n.alpha < 1) - 1.0 / 3, by = 1 / sqrt(9 * d);
    double less = 0;
    if (n.alpha < 1) less = log(1 - cuda_draw(n.chance, row, first + DRAWS - 1, unit)) / n.alpha;
    for (unsigned i = 0; i < TRIES; i++) {
        const double u = 1 - cuda_draw(n.chance, row, first + 3 * i, unit);
        const double turn =
            2 * 3.14159265358979323846 * cuda_draw(n.chance, row, first + 3 * i + 1, unit);
        const double z = sqrt(-2 * log(u)) * cos(turn), t = 1 + times(by, z), v = t * t * t;
        const double accept = 1 - cuda_draw(n.chance, row, first + 3 * i + 2, unit);
        if (t > 0 && log(accept) < times(z, z) / 2 + d - times(d, v) + times(d, log(v)))
            return log(d * v) + less;
    }
    return log(d) + less;
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) shares_kernel(double *shares, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows; t += step) {
        double *share = shares + t * n.n, most = -INFINITY, sum = 0;
        for (int i = 1; i < n.n; i++) {
            share[i] = log_gamma_draw(n, t, (unsigned)i + 1);
            most = fmax(most, share[i]);
        }
        for (int i = 1; i < n.n; i++) sum += share[i] = exp(share[i] - most);
        const double other = log_gamma_draw(n, t, 1) - log_gamma_draw(n, t, 0);
        share[0] = 1 / (1 + exp(other));
        for (int i = 1; i < n.n; i++) share[i] *= (1 - share[0]) / sum;
    }
}

template <class T>
__device__ __forceinline__ float blend(const each_of<const T> &x, const double *share, int64_t at,
                                       int n)
{
    float v = 0;
    for (int i = 0; i < n; i++) v += times((float)share[i], to_f(x.at[i][at]));
    return v;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const each_of<const T> x, const double *shares, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows * n.count;
         t += step) {
        int64_t row = t;
        take(&row, n.count);
        const float v = blend(x, shares + row * n.n, t, n.n);
        y[t] = to_value<T>(v < n.low ? n.low : v > n.high ? n.high : v);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(const each_of<T> dx, const each_of<const T> x, const T *dy,
                    const double *shares, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows * n.count;
         t += step) {
        int64_t row = t;
        take(&row, n.count);
        const double *share = shares + row * n.n;
        const float v = blend(x, share, t, n.n);
        const bool inside = v >= n.low && v <= n.high;
        for (int i = 0; i < n.n; i++) {
            const float g = inside ? times((float)share[i], to_f(dy[t])) : 0;
            if (dx.at[i]) dx.at[i][t] = to_value<T>(dx.adds[i] ? to_f(dx.at[i][t]) + g : g);
        }
    }
}

template <class T> each_of<const T> inputs_of(const keel_call *c)
{
    each_of<const T> x = {};
    for (int i = 0; i < c->node->n_in; i++) x.at[i] = cuda_in<T>(c, i);
    return x;
}

const double *shares_of(const keel_call *c, image *n)
{
    const keel_augmix_args *a = cuda_args<keel_augmix_args>(c);
    double *shares = static_cast<double *>(c->scratch);
    *n = { a->alpha,
           a->first,
           cuda_chance_of(c),
           c->rows,
           keel_row_count(&c->node->in[0]),
           c->node->n_in,
           (float)a->values.low,
           (float)a->values.high };
    cuda_launch(c, shares_kernel, cuda_blocks(c->rows), CUDA_THREADS, 0, shares, *n);
    return shares;
}

template <class T> void forward(const keel_call *c)
{
    image n;
    const double *shares = shares_of(c, &n);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                inputs_of<T>(c), shares, n);
}

template <class T> void backward(const keel_call *c)
{
    image n;
    each_of<T> dx = {};
    const double *shares = shares_of(c, &n);
    for (int i = 0; i < n.n; i++) {
        dx.at[i] = cuda_in_grad<T>(c, i);
        dx.adds[i] = c->in_adds[i];
    }
    cuda_launch(c, backward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, dx,
                inputs_of<T>(c), cuda_out_grad<T>(c), shares, n);
}

keel_status prepare(keel_prepare *p)
{
    if (p->node->n_in > IN_MAX) return KEEL_EUNSUP;
    return cuda_prepare(p, p->rows * p->node->n_in * (int64_t)sizeof(double));
}
} // namespace

CUDA_KERNEL(augmix) = { .op = &keel_op_augmix,
                        .name = "cuda",
                        .prepare = prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
