/* See ops/smooth.c. A thread has a row's share and the two lines of numbers whose products are its
 * window, and then an element; backward, an element adds up what it gave to its neighbours. */
#include "ops/cuda/_chance.h"
#include <math.h>
extern "C" {
#include "ops/smooth.h"
}

namespace
{
struct image {
    keel_smooth_args a;
    cuda_chance chance;
    int64_t rows, dim[3], count; /* count: of a row */
    float low, high;
};

/* In scratch, of each row: its share, and numbers across and down. */
__host__ __device__ __forceinline__ int64_t room_of(const keel_smooth_args &a)
{
    return 1 + a.size[0] + a.size[1];
}

__device__ void bell(double *w, int64_t n, double deviation)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = ((double)i - (double)(n - 1) / 2) / deviation;
        sum += w[i] = exp(-0.5 * x * x);
    }
    for (int64_t i = 0; i < n; i++) w[i] /= sum;
}

__device__ double share_of(const image &n, int64_t row, double *across)
{
    const keel_smooth_args &a = n.a;
    const double first = cuda_draw(n.chance, row, a.first, a.range[0]);
    if (a.sharpens) return 1 - 2 * first;
    if (!a.always && !(cuda_draw(n.chance, row, a.first + 1, a.range[1]) < first)) return 0;
    for (unsigned d = 0; d < 2; d++) {
        double deviation = a.deviation[d];
        if (!a.always) deviation = cuda_draw(n.chance, row, a.first + 2 + d, a.range[2]) + 1e-6;
        bell(across + (d ? a.size[0] : 0), a.size[d], deviation);
    }
    return 1;
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) windows_kernel(double *to, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows; t += step) {
        double *own = to + t * room_of(n.a);
        own[0] = share_of(n, t, own + 1);
    }
}

/* Goes through the numbers of a window. */
struct numbers {
    const double *across, *down;
    int64_t i, j, size, middle;
    bool sharpens;

    __device__ __forceinline__ numbers(const image &n, const double *window)
        : across(window + 1), down(window + 1 + n.a.size[0]), i(0), j(0), size(n.a.size[0]),
          middle(n.a.size[0] * n.a.size[1] / 2), sharpens(n.a.sharpens)
    {
    }
    /* Keras makes it width x height and takes the numbers for height x width. */
    __device__ __forceinline__ double next()
    {
        double w;
        if (sharpens) {
            w = (i == middle ? 5.0 : 1.0) / 13;
            i++;
        } else {
            w = down[i] * across[j];
            if (++j == size) i++, j = 0;
        }
        return w;
    }
};

struct spot {
    int64_t row, i, j, begin; /* begin: of the row */
};

__device__ __forceinline__ spot spot_of(const image &n, int64_t t)
{
    spot s;
    s.row = t;
    take(&s.row, n.dim[2]);
    s.j = take(&s.row, n.dim[1]);
    s.i = take(&s.row, n.dim[0]);
    s.begin = s.row * n.count;
    return s;
}

/* The sum over the window around element t of f(weight, element), or with BACK over the elements
 * whose window it is in. */
template <bool BACK, class F>
__device__ __forceinline__ void look(const image &n, const double *window, const spot &s, int64_t t,
                                     F f)
{
    numbers w(n, window);
    for (int64_t p = 0; p < n.a.size[0]; p++)
        for (int64_t q = 0; q < n.a.size[1]; q++) {
            const double weight = w.next();
            int64_t down = p - (n.a.size[0] - 1) / 2, across = q - (n.a.size[1] - 1) / 2;
            if (BACK) down = -down, across = -across;
            const int64_t i = s.i + down, j = s.j + across;
            if (i >= 0 && i < n.dim[0] && j >= 0 && j < n.dim[1])
                f(weight, t + (down * n.dim[1] + across) * n.dim[2]);
        }
}

template <class T>
__device__ __forceinline__ float mean(const image &n, const T *x, const double *window,
                                      const spot &s, int64_t t)
{
    double sum = 0;
    look<false>(n, window, s, t, [&](double w, int64_t at) { sum += w * (double)to_f(x[at]); });
    return (float)sum;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const double *windows, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = n.rows * n.count;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const spot s = spot_of(n, t);
        const double *window = windows + s.row * room_of(n.a);
        const float share = (float)window[0];
        float v = to_f(x[t]);
        if (share != 0) {
            const float m = mean(n, x, window, s, t);
            v = share == 1 ? m : v + times(share, m - v);
        }
        y[t] = to_value<T>(v < n.low ? n.low : v > n.high ? n.high : v);
    }
}

/* The gradient where nothing was clipped, else 0. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    inside_kernel(float *g, const T *x, const T *dy, const double *windows, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = n.rows * n.count;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const spot s = spot_of(n, t);
        const double *window = windows + s.row * room_of(n.a);
        const float share = (float)window[0];
        float v = to_f(x[t]);
        if (share != 0) v += times(share, mean(n, x, window, s, t) - v);
        g[t] = v >= n.low && v <= n.high ? to_f(dy[t]) : 0;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const float *g, const double *windows, const image n, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = n.rows * n.count;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const spot s = spot_of(n, t);
        const double *window = windows + s.row * room_of(n.a);
        const float share = (float)window[0];
        float sum = (1 - share) * g[t];
        if (share != 0)
            look<true>(n, window, s, t,
                       [&](double w, int64_t at) { sum += share * (float)w * g[at]; });
        dx[t] = to_value<T>(adds ? to_f(dx[t]) + sum : sum);
    }
}

double *windows_of(const keel_call *c, image *n)
{
    const keel_smooth_args *a = cuda_args<keel_smooth_args>(c);
    const int64_t *dim = c->node->in[0].shape.dim;
    double *windows = static_cast<double *>(c->scratch);
    *n = { *a,
           cuda_chance_of(c),
           c->rows,
           { dim[0], dim[1], dim[2] },
           keel_row_count(&c->node->in[0]),
           (float)a->values.low,
           (float)a->values.high };
    cuda_launch(c, windows_kernel, cuda_blocks(c->rows), CUDA_THREADS, 0, windows, *n);
    return windows;
}

template <class T> void forward(const keel_call *c)
{
    image n;
    const double *windows = windows_of(c, &n);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), windows, n);
}

template <class T> void backward(const keel_call *c)
{
    image n;
    if (!c->in_grad[0]) return;
    double *windows = windows_of(c, &n);
    float *g = reinterpret_cast<float *>(windows + c->rows * room_of(n.a));
    cuda_launch(c, inside_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, g,
                cuda_in<T>(c, 0), cuda_out_grad<T>(c), windows, n);
    cuda_launch(c, backward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0,
                cuda_in_grad<T>(c, 0), g, windows, n, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t windows =
        p->rows * room_of(*static_cast<const keel_smooth_args *>(p->node->args));
    const int64_t inside = p->pass == KEEL_BACKWARD ? p->rows * keel_row_count(&p->node->in[0]) : 0;
    return cuda_prepare(p, windows * (int64_t)sizeof(double) + inside * (int64_t)sizeof(float));
}
} // namespace

CUDA_KERNEL(smooth) = { .op = &keel_op_smooth,
                        .name = "cuda",
                        .prepare = prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
