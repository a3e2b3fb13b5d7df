/* See ops/reduce.c. An element of the output has a thread, a warp or a block, which the shape
 * decides: threads where neighbours of the input go to neighbours of the output. */
#include "ops/cuda/_lines.h"

namespace
{
struct fold_shape {
    int rank;
    int64_t dim[KEEL_RANK_MAX], in_step[KEEL_RANK_MAX], out_step[KEEL_RANK_MAX];
    bool over[KEEL_RANK_MAX];
    int64_t n_in, n_out, times, rows; /* of a row; elements that become one */
    keel_reduce_to to;

    /* The first element of the input that goes to element `out` of a row. */
    __device__ __forceinline__ int64_t first(int64_t out) const
    {
        int64_t at = 0;
        for (int d = rank - 1; d >= 0; d--)
            if (!over[d]) at += take(&out, dim[d]) * in_step[d];
        return at;
    }
    /* How far element j of those is behind the first. */
    __device__ __forceinline__ int64_t next(int64_t j) const
    {
        int64_t at = 0;
        for (int d = rank - 1; d >= 0; d--)
            if (over[d]) at += take(&j, dim[d]) * in_step[d];
        return at;
    }
    /* Where element `in` of a row goes. */
    __device__ __forceinline__ int64_t goes_to(int64_t in) const
    {
        int64_t at = 0;
        for (int d = rank - 1; d >= 0; d--) {
            const int64_t k = take(&in, dim[d]);
            if (!over[d]) at += k * out_step[d];
        }
        return at;
    }
};

struct larger { /* a NaN stays */
    __device__ __forceinline__ double operator()(double a, double b) const
    {
        return a != a || a > b ? a : b;
    }
};

struct smaller {
    __device__ __forceinline__ double operator()(double a, double b) const
    {
        return a != a || a < b ? a : b;
    }
};

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS) forward_kernel(T *y, const T *x, const fold_shape s)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t line = threads::first_line(); line < s.rows * s.n_out; line += threads::step()) {
        int64_t row = line;
        const int64_t out = take(&row, s.n_out), begin = row * s.n_in + s.first(out);
        const bool sums = s.to == KEEL_REDUCE_MEAN || s.to == KEEL_REDUCE_SUM;
        double all = sums ? 0 : s.to == KEEL_REDUCE_MAX ? -INFINITY : INFINITY;
        for (int64_t j = threads::number(); j < s.times; j += WIDTH) {
            const double v = to_f(x[begin + s.next(j)]);
            all = sums ? all + v : s.to == KEEL_REDUCE_MAX ? larger()(all, v) : smaller()(all, v);
        }
        if (sums)
            all = threads::fold(all, room, gpu_plus());
        else if (s.to == KEEL_REDUCE_MAX)
            all = threads::fold(all, room, larger());
        else
            all = threads::fold(all, room, smaller());
        if (s.to == KEEL_REDUCE_MEAN) all /= (double)s.times;
        if (threads::number() == 0) y[line] = to_value<T>((float)all);
    }
}

/* How many elements are the largest: they share the gradient. */
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    share_kernel(float *share, const T *x, const T *y, const fold_shape s)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(float, room, 33);
    for (int64_t line = threads::first_line(); line < s.rows * s.n_out; line += threads::step()) {
        int64_t row = line;
        const int64_t out = take(&row, s.n_out), begin = row * s.n_in + s.first(out);
        float equal = 0;
        for (int64_t j = threads::number(); j < s.times; j += WIDTH)
            equal += to_f(x[begin + s.next(j)]) == to_f(y[line]) ? 1.0f : 0.0f;
        equal = threads::fold(equal, room, gpu_plus());
        if (threads::number() == 0) share[line] = equal;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *x, const T *y, const T *dy, const float *share,
                    const fold_shape s, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.rows * s.n_in;
         t += step) {
        int64_t row = t;
        const int64_t in = take(&row, s.n_in), at = row * s.n_out + s.goes_to(in);
        float g = to_f(dy[at]);
        if (share)
            g = to_f(x[t]) == to_f(y[at]) ? g / share[at] : 0;
        else if (s.to == KEEL_REDUCE_MEAN)
            g /= (float)s.times;
        dx[t] = to_value<T>(adds ? to_f(dx[t]) + g : g);
    }
}

fold_shape fold_shape_of(const keel_call *c)
{
    const keel_reduce_args *a = cuda_args<keel_reduce_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    fold_shape s = {};
    s.rank = in.rank;
    s.n_in = s.n_out = s.times = 1;
    s.rows = c->rows;
    s.to = a->to;
    for (int d = in.rank - 1; d >= 0; d--) {
        s.dim[d] = in.dim[d];
        s.over[d] = a->over[d];
        s.in_step[d] = s.n_in;
        s.out_step[d] = s.n_out;
        s.n_in *= in.dim[d];
        (a->over[d] ? s.times : s.n_out) *= in.dim[d];
    }
    return s;
}

/* Threads of an element of the output. */
int width_of(const fold_shape &s)
{
    int last = s.rank - 1;
    while (last > 0 && s.dim[last] == 1) last--;
    const bool apart = s.rank == 0 || (!s.over[last] && s.dim[last] >= GPU_WARP);
    if (apart || s.times < 8) return 1;
    return s.times > LINE_LONG ? CUDA_THREADS : GPU_WARP;
}

template <int WIDTH, class T> void forward_as(const keel_call *c, const fold_shape &s)
{
    cuda_launch(c, forward_kernel<WIDTH, T>, line_of_threads<WIDTH>::blocks(s.rows * s.n_out),
                CUDA_THREADS, 0, cuda_out<T>(c), cuda_in<T>(c, 0), s);
}

template <class T> void forward(const keel_call *c)
{
    const fold_shape s = fold_shape_of(c);
    const int width = width_of(s);
    width == 1          ? forward_as<1, T>(c, s)
    : width == GPU_WARP ? forward_as<GPU_WARP, T>(c, s)
                        : forward_as<CUDA_THREADS, T>(c, s);
}

template <int WIDTH, class T> void share_as(const keel_call *c, float *share, const fold_shape &s)
{
    cuda_launch(c, share_kernel<WIDTH, T>, line_of_threads<WIDTH>::blocks(s.rows * s.n_out),
                CUDA_THREADS, 0, share, cuda_in<T>(c, 0), cuda_out<T>(c), s);
}

template <class T> void backward(const keel_call *c)
{
    const fold_shape s = fold_shape_of(c);
    const int width = width_of(s);
    const bool picks = s.to == KEEL_REDUCE_MAX || s.to == KEEL_REDUCE_MIN;
    float *share = picks ? static_cast<float *>(c->scratch) : nullptr;
    if (!c->in_grad[0]) return;
    if (picks)
        width == 1          ? share_as<1, T>(c, share, s)
        : width == GPU_WARP ? share_as<GPU_WARP, T>(c, share, s)
                            : share_as<CUDA_THREADS, T>(c, share, s);
    cuda_launch(c, backward_kernel<T>, cuda_blocks(s.rows * s.n_in), CUDA_THREADS, 0,
                cuda_in_grad<T>(c, 0), cuda_in<T>(c, 0), cuda_out<T>(c), cuda_out_grad<T>(c), share,
                s, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const bool back = p->pass == KEEL_BACKWARD;
    return cuda_prepare(
        p, back ? p->rows * keel_row_count(&p->node->out[0]) * (int64_t)sizeof(float) : 0);
}
} // namespace

CUDA_KERNEL(reduce) = { .op = &keel_op_reduce,
                        .name = "cuda",
                        .prepare = prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
