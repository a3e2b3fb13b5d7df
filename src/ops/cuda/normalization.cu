/* See ops/normalization.c. Statistics that are constants of the layer go with the launch if they
 * are few, else into scratch by launches before it. */
#include "ops/cuda/_given.h"
extern "C" {
#include "ops/normalization.h"
}

namespace
{
/* The emulator goes both ways by small cases. */
#ifdef __CUDACC__
const int FEW = 64;
#else
const int FEW = 3;
#endif

struct statistics {
    const float *mean, *variance; /* of the device; NULL: the constants below */
    const double *given;          /* more than a few constants, in scratch: means, then scales */
    double means[FEW], scales[FEW];
    int rank;
    int64_t dim[KEEL_RANK_MAX], step[KEEL_RANK_MAX]; /* of a row; of the statistics */
    int64_t own, count;                              /* statistics; elements of the call */
    bool invert;
};

__host__ __device__ __forceinline__ double scale_of(double variance)
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
        const double mean = back      ? 0
                            : s.mean  ? (double)s.mean[k]
                            : s.given ? s.given[k]
                                      : s.means[k];
        const double scale = s.variance ? scale_of(s.variance[k])
                             : s.given  ? s.given[s.own + k]
                                        : s.scales[k];
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
    s.own = 1;
    for (int d = in.rank - 1; d >= 0; d--) {
        s.dim[d] = in.dim[d];
        s.step[d] = a->over.dim[d] == 1 ? 0 : s.own;
        s.own *= a->over.dim[d];
    }
    if (!given) {
        s.mean = static_cast<const float *>(c->weight[0]);
        s.variance = static_cast<const float *>(c->weight[1]);
    } else if (s.own > FEW) {
        double *room = static_cast<double *>(c->scratch);
        const int64_t own = s.own;
        give(c, room, 2 * own, 1,
             [=](int64_t k) { return k < own ? a->mean[k] : scale_of(a->variance[k - own]); });
        s.given = room;
    }
    for (int64_t k = 0; given && !s.given && k < s.own; k++) {
        s.means[k] = a->mean[k];
        s.scales[k] = scale_of(a->variance[k]);
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
    const int64_t own = keel_shape_count(&a->over);
    const bool many = p->node->n_weight == 0 && own > FEW;
    return cuda_prepare(p, many ? 2 * own * (int64_t)sizeof(double) : 0);
}
} // namespace

CUDA_KERNEL(normalization) = { .op = &keel_op_normalization,
                               .name = "cuda",
                               .prepare = prepare,
                               .run = { forward<float>, backward<float> },
                               .narrow = { forward<bf16>, backward<bf16> },
                               .half = { forward<f16>, backward<f16> } };
