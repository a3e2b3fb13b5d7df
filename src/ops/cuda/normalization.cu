/* See ops/normalization.c. Statistics that are constants of the layer go with the launch, so there
 * may be only a few of them. */
#include "ops/cuda/_kernel.h"
extern "C" {
#include "ops/normalization.h"
}

namespace
{
const int FEW = 64;

struct statistics {
    const float *mean, *variance; /* of the device; NULL: the constants below */
    double means[FEW], scales[FEW];
    int rank;
    int64_t dim[KEEL_RANK_MAX], step[KEEL_RANK_MAX]; /* of a row; of the statistics */
    int64_t count;
    bool invert;
};

__device__ __forceinline__ double scale_of(double variance)
{
    const double root = sqrt(variance);
    return root > 1e-7 ? root : 1e-7;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    run_kernel(T *to, const T *from, const statistics s, bool back, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.count; t += step) {
        int64_t rest = t, k = 0;
        for (int d = s.rank - 1; d >= 0; d--) k += take(&rest, s.dim[d]) * s.step[d];
        const double mean = back ? 0 : s.mean ? (double)s.mean[k] : s.means[k];
        const double scale = s.variance ? scale_of(s.variance[k]) : s.scales[k];
        const double x = to_f(from[t]), y = s.invert ? mean + x * scale : (x - mean) / scale;
        to[t] = to_value<T>((float)(adds ? to_f(to[t]) + y : y));
    }
}

statistics statistics_of(const keel_call *c)
{
    const keel_normalization_args *a = cuda_args<keel_normalization_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    const bool given = c->node->n_weight == 0;
    statistics s = {};
    s.rank = in.rank;
    s.count = cuda_count(c);
    s.invert = a->invert;
    int64_t own = 1;
    for (int d = in.rank - 1; d >= 0; d--) {
        s.dim[d] = in.dim[d];
        s.step[d] = a->over.dim[d] == 1 ? 0 : own;
        own *= a->over.dim[d];
    }
    if (!given) {
        s.mean = static_cast<const float *>(c->weight[0]);
        s.variance = static_cast<const float *>(c->weight[1]);
    }
    for (int64_t k = 0; given && k < own; k++) {
        const double root = sqrt(a->variance[k]);
        s.means[k] = a->mean[k];
        s.scales[k] = root > 1e-7 ? root : 1e-7;
    }
    return s;
}

template <class T> void forward(const keel_call *c)
{
    cuda_launch(c, run_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), statistics_of(c), false, false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0])
        cuda_launch(c, run_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0,
                    cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), statistics_of(c), true,
                    c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const keel_normalization_args *a = static_cast<const keel_normalization_args *>(p->node->args);
    if (p->node->n_weight == 0 && keel_shape_count(&a->over) > FEW) return KEEL_EUNSUP;
    return cuda_always(p);
}
} // namespace

CUDA_KERNEL(normalization) = { .op = &keel_op_normalization,
                               .name = "cuda",
                               .prepare = prepare,
                               .run = { forward<float>, backward<float> },
                               .narrow = { forward<bf16>, backward<bf16> },
                               .half = { forward<f16>, backward<f16> } };
