/* See ops/scale.c. */
#include "ops/cuda/_columns.h"

namespace
{
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    run_kernel(T *to, const T *from, const float *w, int64_t own, int64_t count, bool wide,
               bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, groups = (own + 3) / 4;
    const int64_t lines = count / own;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * groups;
         t += step) {
        int64_t line = t;
        const int64_t k = 4 * take(&line, groups), n = own - k, at = line * own + k;
        float x[4], by[4], old[4] = { 0, 0, 0, 0 };
        load_some(x, from + at, n, wide);
        load_some(by, w + k, n, false);
        if (adds) load_some(old, to + at, n, wide);
        for (int e = 0; e < 4; e++) x[e] = old[e] + by[e] * x[e];
        store_some(to + at, x, n, wide);
    }
}

template <class T> struct products {
    const T *x, *dy;
    int64_t own;
    __device__ __forceinline__ void operator()(int64_t line, int64_t k, double *sum) const
    {
        sum[0] += (double)to_f(x[line * own + k]) * (double)to_f(dy[line * own + k]);
    }
};

int64_t own_of(const keel_node *n)
{
    return keel_row_count(&n->weight[0]);
}

template <class T> void run(const keel_call *c, T *to, const T *from, bool adds)
{
    const int64_t own = own_of(c->node), count = cuda_count(c);
    cuda_launch(c, run_kernel<T>, cuda_blocks(count / own * ((own + 3) / 4)), CUDA_THREADS, 0, to,
                from, static_cast<const float *>(c->weight[0]), own, count,
                own % 4 == 0 && wide4(to) && wide4(from), adds);
}

template <class T> void forward(const keel_call *c)
{
    run(c, cuda_out<T>(c), cuda_in<T>(c, 0), false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0]) run(c, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), c->in_adds[0]);
}

template <class T> void weights(const keel_call *c)
{
    const int64_t own = own_of(c->node);
    float *dw = static_cast<float *>(c->weight_grad[0]);
    if (dw)
        columns<1>(c, { { dw } }, cuda_count(c) / own, own,
                   products<T>{ cuda_in<T>(c, 0), cuda_out_grad<T>(c), own });
}

keel_status prepare(keel_prepare *p)
{
    const int64_t own = own_of(p->node);
    const int64_t places = p->rows * (keel_row_count(&p->node->in[0]) / own);
    return cuda_prepare(p, p->pass == KEEL_WEIGHTS ? column_scratch(places, own, 1) : 0);
}
} // namespace

CUDA_KERNEL(scale) = { .op = &keel_op_scale,
                       .name = "cuda",
                       .prepare = prepare,
                       .run = { forward<float>, backward<float>, weights<float> },
                       .narrow = { forward<bf16>, backward<bf16>, weights<bf16> },
                       .half = { forward<f16>, backward<f16>, weights<f16> } };
