/* What batch normalisation knows of each channel, from the merged records or the moving statistics:
 * see ops/batch_norm.c, and ops/masked_batch_norm.c for places that a mask leaves. */
#ifndef KEEL_OPS_CUDA_BATCH_NORM_FACTS_H
#define KEEL_OPS_CUDA_BATCH_NORM_FACTS_H
#include "ops/cuda/_packs.h"
#include "ops/cuda/_silu.h"
extern "C" {
KEEL_USES_OP(masked_batch_norm);
}

struct facts_args {
    const double *merged, *forward; /* NULL: moving statistics */
    const float *gamma, *beta, *mean, *variance, *renorm_mean, *renorm_stddev;
    double epsilon, per_row, r_min, r_max, d_max;
    double more; /* places that do not exist, and count in backward */
    bool renorm;
    int64_t c;
};

/* What a thread needs of each channel: y = (x - mean) scale + offset, and
 * dx = slope (dy - a - (x - mean) b). */
struct facts {
    float *mean, *scale, *offset; /* slope is scale */
    float *a, *b;                 /* of backward only */
};
static const int FACTS = 5;

static bool meets(const keel_node *n)
{
    return n->partial > 0;
}

/* What Keras adds to the number of places that count. */
static const double COUNTED_MORE = 1e-7; /* keras.config.epsilon() */

/* Places that do not count, by the second input. Then the scratch begins with a record of one row
 * whose places are those that count, and what Keras adds: masked_batch_norm.cu makes it. */
static bool has_mask(const keel_node *n)
{
    return n->op == &keel_op_masked_batch_norm;
}

static int64_t channels_of(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

/* Bytes of that record. */
static int64_t masked_bytes(const keel_node *n)
{
    const int64_t doubles = meets(n) && has_mask(n) ? 2 + 2 * channels_of(n) : 0;
    return doubles * (int64_t)sizeof(double);
}

/* The scratch behind it. */
static char *room_of(const keel_call *c)
{
    return static_cast<char *>(c->scratch) + masked_bytes(c->node);
}

static bool has_silu(const keel_node *n)
{
    return static_cast<const keel_batch_norm_args *>(n->args)->silu;
}

/* What a call needs of all channels is at the beginning of that, in so many bytes. */
static int64_t facts_bytes(const keel_node *n)
{
    const int64_t doubles = (FACTS * channels_of(n) + 1) / 2;
    return doubles * (int64_t)sizeof(double);
}

/* Sums of a record are there, or behind what silu needs of all channels. */
static double *sums_of(const keel_call *c)
{
    return reinterpret_cast<double *>(room_of(c) + (has_silu(c->node) ? facts_bytes(c->node) : 0));
}

/* What is left of dy behind silu, whose input is made again as forward made it. */
template <class T, int N>
static __device__ __forceinline__ void pass_silu(float dy[N], const float x[N], const float mean[N],
                                                 const float scale[N], const float offset[N])
{
    UNROLL
    for (int e = 0; e < N; e++)
        dy[e] *= silu_slope<sizeof(T) == 2>(fmaf(x[e] - mean[e], scale[e], offset[e]));
}

static facts_args args_of(const keel_call *c)
{
    const keel_batch_norm_args *a = cuda_args<keel_batch_norm_args>(c);
    const keel_node *n = c->node;
    const int moving = a->scale + a->center;
    const float *const *w = reinterpret_cast<const float *const *>(c->weight);
    facts_args f = {};
    f.c = channels_of(n);
    f.per_row = (double)(keel_row_count(&n->in[0]) / f.c);
    f.epsilon = a->epsilon;
    f.gamma = a->scale ? w[0] : nullptr;
    f.beta = a->center ? w[a->scale] : nullptr;
    f.mean = w[moving];
    f.variance = w[moving + 1];
    if (!meets(n)) return f;
    f.merged = c->merged;
    f.forward = c->merged_forward ? c->merged_forward : c->merged;
    if (has_mask(n)) {
        f.forward = static_cast<const double *>(c->scratch);
        f.per_row = 1;
        f.more = COUNTED_MORE;
        return f;
    }
    f.renorm = a->renorm.on;
    if (!f.renorm) return f;
    f.renorm_mean = w[moving + 3];
    f.renorm_stddev = w[moving + 4];
    f.r_min = a->renorm.r_min;
    f.r_max = a->renorm.r_max;
    f.d_max = a->renorm.d_max;
    return f;
}

struct norm_channel {
    double mean, invstd, r, d;
};

static __device__ __forceinline__ double mean_of(const facts_args &f, int64_t k)
{
    return f.forward ? f.forward[1 + k] : (double)f.mean[k];
}

static __device__ norm_channel norm_channel_of(const facts_args &f, int64_t k)
{
    norm_channel h = { 0, 0, 1, 0 };
    double variance;
    h.mean = mean_of(f, k);
    if (f.forward)
        variance = f.forward[1 + f.c + k] / (f.forward[0] * f.per_row);
    else
        variance = f.variance[k];
    h.invstd = 1 / sqrt(variance + f.epsilon);
    if (!f.renorm) return h;
    const double deviation = fmax((double)f.renorm_stddev[k], sqrt(f.epsilon));
    h.r = fmin(fmax(1 / h.invstd / deviation, f.r_min), f.r_max);
    h.d = fmin(fmax((h.mean - f.renorm_mean[k]) / deviation, -f.d_max), f.d_max);
    return h;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    facts_kernel(const facts_args f, const facts to, bool backward)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; k < f.c; k += step) {
        const norm_channel h = norm_channel_of(f, k);
        const double gamma = f.gamma ? f.gamma[k] : 1.0, scale = h.invstd * gamma * h.r;
        const float mean = (float)h.mean;
        to.mean[k] = mean;
        to.scale[k] = (float)scale;
        to.offset[k] = (float)(gamma * h.d + (f.beta ? f.beta[k] : 0.0) + (mean - h.mean) * scale);
        if (backward) {
            const double total = f.forward ? f.forward[0] * f.per_row : 1;
            const double a = f.forward ? f.merged[1 + k] / total : 0;
            const double b = f.forward ? f.merged[1 + f.c + k] / total * h.invstd : 0;
            const double off = mean - h.mean * (1 + f.more / total);
            to.a[k] = (float)(a + off * b); /* x - mean of a rounded mean */
            to.b[k] = (float)b;
        }
    }
}

static facts facts_of(const keel_call *c, bool backward)
{
    const facts_args f = args_of(c);
    float *room = reinterpret_cast<float *>(room_of(c));
    const facts to = { room, room + f.c, room + 2 * f.c, room + 3 * f.c, room + 4 * f.c };
    if (c->rows > 0)
        cuda_launch(c, facts_kernel, cuda_blocks(f.c), CUDA_THREADS, 0, f, to, backward);
    return to;
}

#endif
