/* See ops/cumprod.c. A thread has a line where neighbours have neighbouring lines; else a warp has
 * one, GPU_WARP places at a time. Backward keeps the sums s, of which each is made from the next,
 * in scratch. */
#include "ops/cuda/_axis.h"

namespace
{
typedef line_threads<false> warps;

/* The product of this lane's number and those of the lanes before it. */
__device__ __forceinline__ double products(double x)
{
    for (int by = 1; by < GPU_WARP; by *= 2) {
        const int other = warps::number() - by;
        const double more = __shfl_sync(GPU_ALL, x, other < 0 ? 0 : other);
        if (other >= 0) x *= more;
    }
    return x;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS) apart_kernel(T *y, const T *x, const axis_lines l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < l.lines; t += step) {
        const int64_t begin = l.begin(t);
        double product = 1;
        for (int64_t j = 0; j < l.n; j++) {
            product *= to_f(x[begin + j * l.inner]);
            y[begin + j * l.inner] = to_value<T>((float)product);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS) warp_kernel(T *y, const T *x, const axis_lines l)
{
    for (int64_t line = warps::first_line(); line < l.lines; line += warps::step()) {
        double before = 1;
        for (int64_t first = 0; first < l.n; first += GPU_WARP) {
            const int64_t j = first + warps::number(), at = line * l.n + j;
            const double all = before * products(j < l.n ? to_f(x[at]) : 1);
            if (j < l.n) y[at] = to_value<T>((float)all);
            before = __shfl_sync(GPU_ALL, all, GPU_WARP - 1);
        }
    }
}

/* s[j] = dy[j] + x[j + 1] s[j + 1]; dx[j] = s[j] times what is before j. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    apart_back_kernel(T *dx, double *s, const T *x, const T *dy, const axis_lines l, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < l.lines; t += step) {
        const int64_t begin = l.begin(t);
        double sum = 0, by = 0, before = 1;
        for (int64_t j = l.n - 1; j >= 0; j--) {
            const int64_t at = begin + j * l.inner;
            sum = to_f(dy[at]) + by * sum;
            by = to_f(x[at]);
            s[at] = sum;
        }
        for (int64_t j = 0; j < l.n; j++) {
            const int64_t at = begin + j * l.inner;
            const double d = before * s[at];
            before *= to_f(x[at]);
            dx[at] = to_value<T>((float)(adds ? to_f(dx[at]) + d : d));
        }
    }
}

/* The places of a warp from the last to the first: lane k has the place of which s is
 * sum + by * (that of the place behind). A lane takes in what is behind it, twice as much each
 * time. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    warp_back_kernel(T *dx, double *s, const T *x, const T *dy, const axis_lines l, bool adds)
{
    for (int64_t line = warps::first_line(); line < l.lines; line += warps::step()) {
        const int64_t begin = line * l.n;
        double behind = 0, before = 1;
        for (int64_t first = 0; first < l.n; first += GPU_WARP) {
            const int64_t j = l.n - 1 - first - warps::number();
            double sum = j >= 0 ? to_f(dy[begin + j]) : 0;
            double by = j >= 0 && j + 1 < l.n ? to_f(x[begin + j + 1]) : 0;
            for (int apart = 1; apart < GPU_WARP; apart *= 2) {
                const int other = warps::number() - apart;
                const double more = __shfl_sync(GPU_ALL, sum, other < 0 ? 0 : other);
                const double times = __shfl_sync(GPU_ALL, by, other < 0 ? 0 : other);
                if (other < 0) continue;
                sum += by * more;
                by *= times;
            }
            if (first > 0) sum += by * behind;
            if (j >= 0) s[begin + j] = sum;
            behind = __shfl_sync(GPU_ALL, sum, GPU_WARP - 1);
        }
        __syncwarp(); /* s, which other lanes have written */
        for (int64_t first = 0; first < l.n; first += GPU_WARP) {
            const int64_t j = first + warps::number(), at = begin + j;
            const double v = j < l.n ? to_f(x[at]) : 1, all = before * products(v);
            double own = __shfl_sync(GPU_ALL, all, warps::number() ? warps::number() - 1 : 0);
            if (warps::number() == 0) own = before;
            if (j < l.n) {
                const double d = own * s[at];
                dx[at] = to_value<T>((float)(adds ? to_f(dx[at]) + d : d));
            }
            before = __shfl_sync(GPU_ALL, all, GPU_WARP - 1);
        }
    }
}

template <class T> void forward(const keel_call *c)
{
    const axis_lines l = axis_lines_of(c);
    T *y = cuda_out<T>(c);
    const T *x = cuda_in<T>(c, 0);
    if (l.inner > 1)
        cuda_launch(c, apart_kernel<T>, cuda_blocks(l.lines), CUDA_THREADS, 0, y, x, l);
    else
        cuda_launch(c, warp_kernel<T>, line_blocks(l.lines, false), CUDA_THREADS, 0, y, x, l);
}

template <class T> void backward(const keel_call *c)
{
    const axis_lines l = axis_lines_of(c);
    double *s = static_cast<double *>(c->scratch);
    T *dx = cuda_in_grad<T>(c, 0);
    const T *x = cuda_in<T>(c, 0), *dy = cuda_out_grad<T>(c);
    if (!dx) return;
    if (l.inner > 1)
        cuda_launch(c, apart_back_kernel<T>, cuda_blocks(l.lines), CUDA_THREADS, 0, dx, s, x, dy, l,
                    c->in_adds[0]);
    else
        cuda_launch(c, warp_back_kernel<T>, line_blocks(l.lines, false), CUDA_THREADS, 0, dx, s, x,
                    dy, l, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t count = p->rows * keel_row_count(&p->node->in[0]);
    return cuda_prepare(p, p->pass == KEEL_BACKWARD ? count * (int64_t)sizeof(double) : 0);
}
} // namespace

CUDA_KERNEL(cumprod) = { .op = &keel_op_cumprod,
                         .name = "cuda",
                         .prepare = prepare,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
