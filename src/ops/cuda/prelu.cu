/* See ops/prelu.c. The gradient of an alpha is a sum over the rows and the dims that share it. */
#include "ops/cuda/_columns.h"

namespace
{
/* The dims of a row, and which of them share their alphas. */
struct shared_dims {
    int rank;
    int64_t count, own; /* elements of a row; alphas */
    int64_t dim[KEEL_RANK_MAX];
    bool shared[KEEL_RANK_MAX];

    /* The alpha of element `at` of a row. */
    __device__ __forceinline__ int64_t alpha_of(int64_t at) const
    {
        int64_t alpha = 0, step = 1;
        for (int d = rank - 1; d >= 0; d--) {
            const int64_t k = take(&at, dim[d]);
            if (shared[d]) continue;
            alpha += k * step;
            step *= dim[d];
        }
        return alpha;
    }
    /* The element of the call that is the one of `place` for an alpha. */
    __device__ __forceinline__ int64_t element_of(int64_t place, int64_t alpha) const
    {
        int64_t at = 0, step = 1;
        for (int d = rank - 1; d >= 0; d--) {
            at += take(shared[d] ? &place : &alpha, dim[d]) * step;
            step *= dim[d];
        }
        return place * count + at; /* what is left is the row */
    }
};

shared_dims dims_of(const keel_node *n)
{
    const keel_shape &x = n->in[0].shape, &alpha = n->weight[0].shape;
    shared_dims s = {};
    s.rank = x.rank;
    s.count = keel_row_count(&n->in[0]);
    s.own = keel_row_count(&n->weight[0]);
    for (int d = 0; d < x.rank; d++) {
        s.dim[d] = x.dim[d];
        s.shared[d] = alpha.dim[d] != x.dim[d];
    }
    return s;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const float *alpha, int64_t count, const shared_dims s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < count; t += step) {
        int64_t row = t;
        const int64_t at = take(&row, s.count);
        const float v = to_f(x[t]);
        y[t] = to_value<T>(v > 0 ? v : alpha[s.alpha_of(at)] * v);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const T *x, const float *alpha, int64_t count, bool adds,
                    const shared_dims s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < count; t += step) {
        int64_t row = t;
        const int64_t at = take(&row, s.count);
        const float v = to_f(x[t]), g = to_f(dy[t]);
        const float d = v > 0 ? g : v < 0 ? alpha[s.alpha_of(at)] * g : 0;
        dx[t] = to_value<T>(adds ? to_f(dx[t]) + d : d);
    }
}

template <class T> struct below {
    const T *x, *dy;
    shared_dims s;
    __device__ __forceinline__ void operator()(int64_t place, int64_t k, double *sum) const
    {
        const int64_t at = s.element_of(place, k);
        const double v = (double)to_f(x[at]);
        if (v < 0) sum[0] += (double)to_f(dy[at]) * v;
    }
};

template <class T> void forward(const keel_call *c)
{
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), static_cast<const float *>(c->weight[0]), cuda_count(c),
                dims_of(c->node));
}

template <class T> void backward(const keel_call *c)
{
    T *dx = cuda_in_grad<T>(c, 0);
    if (!dx) return;
    cuda_launch(c, backward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, dx,
                cuda_out_grad<T>(c), cuda_in<T>(c, 0), static_cast<const float *>(c->weight[0]),
                cuda_count(c), c->in_adds[0], dims_of(c->node));
}

template <class T> void weights(const keel_call *c)
{
    const shared_dims s = dims_of(c->node);
    float *da = static_cast<float *>(c->weight_grad[0]);
    if (da)
        columns<1>(c, { { da } }, cuda_count(c) / s.own, s.own,
                   below<T>{ cuda_in<T>(c, 0), cuda_out_grad<T>(c), s });
}

keel_status prepare(keel_prepare *p)
{
    const shared_dims s = dims_of(p->node);
    const int64_t places = p->rows * (s.count / s.own);
    return cuda_prepare(p, p->pass == KEEL_WEIGHTS ? column_scratch(places, s.own, 1) : 0);
}
} // namespace

CUDA_KERNEL(prelu) = { .op = &keel_op_prelu,
                       .name = "cuda",
                       .prepare = prepare,
                       .run = { forward<float>, backward<float>, weights<float> },
                       .narrow = { forward<bf16>, backward<bf16>, weights<bf16> },
                       .half = { forward<f16>, backward<f16>, weights<f16> } };
