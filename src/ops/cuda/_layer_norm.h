/* Layer normalisation, of one input and of the sum of two: see ops/layer_norm.c and
 * ops/add_layer_norm.c. A line is a place; its threads have four neighbours each, in turns, whether
 * they are read at once or not, so that bits do not depend on where an array begins. Lines are read
 * several times, but from the cache. */
#ifndef KEEL_OPS_CUDA_LAYER_NORM_H
#define KEEL_OPS_CUDA_LAYER_NORM_H
#include "ops/cuda/_columns.h"
#include "ops/cuda/_lines.h"

template <class T> struct norm_args {
    const T *a, *b; /* b NULL: no sum */
    T *sum, *y;     /* NULL: nobody reads it */
    const float *gamma, *beta;
    float *stats; /* mean and r of each place; NULL: no backward follows */
    int64_t n, places;
    double epsilon;
    bool rms, wide;
};

template <class T> struct norm_back_args {
    const T *x, *dy, *more; /* dy, more: NULL where nothing comes back */
    T *dx[2];               /* NULL: not wanted */
    bool adds[2];
    const float *gamma, *stats;
    int64_t n, places;
    bool rms, wide;
};

static inline int64_t norm_length(const keel_node *n)
{
    const keel_shape &in = n->in[0].shape;
    int64_t count = 1;
    for (int64_t k = static_cast<const keel_layer_norm_args *>(n->args)->dims; k > 0; k--)
        count *= in.dim[in.rank - k];
    return count;
}

template <class T>
static __device__ __forceinline__ void norm_load(float x[4], const norm_args<T> &a, int64_t at,
                                                 int64_t n)
{
    load_some(x, a.a + at, n, a.wide);
    if (!a.b) return;
    float b[4];
    load_some(b, a.b + at, n, a.wide);
    for (int e = 0; e < 4; e++) x[e] = to_f(to_value<T>(x[e] + b[e])); /* as it is stored */
}

template <bool LONG, class T>
static __global__ void __launch_bounds__(CUDA_THREADS, 1) norm_kernel(const norm_args<T> a)
{
    typedef line_threads<LONG> threads;
    SHARED(double, room, 33);
    for (int64_t line = threads::first_line(); line < a.places; line += threads::step()) {
        const int64_t begin = line * a.n;
        double mean = 0, squares = 0;
        float x[4];
        for (int64_t k = 4 * threads::number(); k < a.n; k += 4 * threads::WIDTH) {
            norm_load(x, a, begin + k, a.n - k);
            if (a.sum) store_some(a.sum + begin + k, x, a.n - k, a.wide);
            for (int e = 0; e < 4; e++) mean += a.rms ? 0 : x[e]; /* 0 behind the end */
        }
        mean = threads::fold(mean, room, gpu_plus()) / (double)a.n;
        for (int64_t k = 4 * threads::number(); k < a.n; k += 4 * threads::WIDTH) {
            norm_load(x, a, begin + k, a.n - k);
            for (int e = 0; e < 4; e++) squares += k + e < a.n ? (x[e] - mean) * (x[e] - mean) : 0;
        }
        squares = threads::fold(squares, room, gpu_plus());
        const double r = 1 / sqrt(squares / (double)a.n + a.epsilon);
        if (a.stats && threads::number() == 0) {
            a.stats[2 * line] = (float)mean;
            a.stats[2 * line + 1] = (float)r;
        }
        for (int64_t k = 4 * threads::number(); a.y && k < a.n; k += 4 * threads::WIDTH) {
            float gamma[4] = { 1, 1, 1, 1 }, beta[4] = { 0, 0, 0, 0 };
            norm_load(x, a, begin + k, a.n - k);
            if (a.gamma) load_some(gamma, a.gamma + k, a.n - k, a.wide);
            if (a.beta) load_some(beta, a.beta + k, a.n - k, a.wide);
            for (int e = 0; e < 4; e++) x[e] = (float)((x[e] - mean) * r) * gamma[e] + beta[e];
            store_some(a.y + begin + k, x, a.n - k, a.wide);
        }
    }
}

template <class T>
static __device__ __forceinline__ void norm_gradient(float g[4], const norm_back_args<T> &a,
                                                     int64_t begin, int64_t k)
{
    float gamma[4];
    if (a.dy)
        load_some(g, a.dy + begin + k, a.n - k, a.wide);
    else
        for (int e = 0; e < 4; e++) g[e] = 0;
    if (!a.gamma) return;
    load_some(gamma, a.gamma + k, a.n - k, a.wide);
    for (int e = 0; e < 4; e++) g[e] *= gamma[e];
}

/* dx = more + r (g - mean(g) - xhat mean(g xhat)) */
template <bool LONG, class T>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    norm_back_kernel(const norm_back_args<T> a)
{
    typedef line_threads<LONG> threads;
    SHARED(double, room, 33);
    for (int64_t line = threads::first_line(); line < a.places; line += threads::step()) {
        const int64_t begin = line * a.n;
        const float mean = a.stats[2 * line], r = a.stats[2 * line + 1];
        double sum = 0, product = 0;
        float x[4], g[4];
        for (int64_t k = 4 * threads::number(); a.dy && k < a.n; k += 4 * threads::WIDTH) {
            norm_gradient(g, a, begin, k); /* 0 behind the end */
            load_some(x, a.x + begin + k, a.n - k, a.wide);
            for (int e = 0; e < 4; e++) {
                sum += g[e];
                product += g[e] * (x[e] - mean) * r;
            }
        }
        sum = threads::fold(sum, room, gpu_plus());
        product = threads::fold(product, room, gpu_plus());
        const float shift = a.rms ? 0 : (float)(sum / (double)a.n);
        const float slope = (float)(product / (double)a.n);
        for (int64_t k = 4 * threads::number(); k < a.n; k += 4 * threads::WIDTH) {
            norm_gradient(g, a, begin, k);
            load_some(x, a.x + begin + k, a.n - k, a.wide);
            float more[4] = { 0, 0, 0, 0 };
            if (a.more) load_some(more, a.more + begin + k, a.n - k, a.wide);
            for (int e = 0; e < 4; e++) more[e] += r * (g[e] - shift - (x[e] - mean) * r * slope);
            for (int to = 0; to < 2; to++) {
                if (!a.dx[to]) continue;
                float old[4] = { 0, 0, 0, 0 };
                if (a.adds[to]) load_some(old, a.dx[to] + begin + k, a.n - k, a.wide);
                for (int e = 0; e < 4; e++) old[e] += more[e];
                store_some(a.dx[to] + begin + k, old, a.n - k, a.wide);
            }
        }
    }
}

/* dgamma, dbeta */
template <class T, bool WIDE> struct norm_columns {
    const T *x, *dy;
    const float *stats;
    int64_t n;
    __device__ __forceinline__ void operator()(int64_t place, int64_t k, double sum[2][4]) const
    {
        const float mean = stats[2 * place], r = stats[2 * place + 1];
        const int64_t at = place * n + k, left = WIDE ? 4 : n - k;
        float g[4], v[4];
        load_some(g, dy + at, left, WIDE);
        load_some(v, x + at, left, WIDE);
        for (int e = 0; e < 4; e++) {
            sum[0][e] += g[e] * (v[e] - mean) * r;
            sum[1][e] += g[e];
        }
    }
};

template <class T> static norm_args<T> norm_args_of(const keel_call *c)
{
    const keel_layer_norm_args *a = cuda_args<keel_layer_norm_args>(c);
    norm_args<T> f = {};
    f.gamma = a->scale ? static_cast<const float *>(c->weight[0]) : nullptr;
    f.beta = a->center ? static_cast<const float *>(c->weight[a->scale]) : nullptr;
    f.stats = c->node->n_saved ? static_cast<float *>(c->saved[0]) : nullptr;
    f.n = norm_length(c->node);
    f.places = cuda_count(c) / f.n;
    f.epsilon = a->epsilon;
    f.rms = a->rms;
    return f;
}

template <class T> static void norm_forward(const keel_call *c, norm_args<T> a)
{
    const bool is_long = a.n > LINE_LONG;
    a.wide = a.n % 4 == 0 && wide4(a.a) && wide4(a.b) && wide4(a.sum) && wide4(a.y) &&
             wide4(a.gamma) && wide4(a.beta);
    cuda_launch(c, is_long ? norm_kernel<true, T> : norm_kernel<false, T>,
                line_blocks(a.places, is_long), CUDA_THREADS, 0, a);
}

/* x, dy and more as in norm_back_args. */
template <class T>
static void norm_backward(const keel_call *c, const T *x, const T *dy, const T *more)
{
    const norm_args<T> f = norm_args_of<T>(c);
    norm_back_args<T> a = { x, dy, more, {}, {}, f.gamma, f.stats, f.n, f.places, f.rms, false };
    const bool is_long = a.n > LINE_LONG;
    for (int k = 0; k < c->node->n_in; k++) {
        a.dx[k] = cuda_in_grad<T>(c, k);
        a.adds[k] = c->in_adds[k];
    }
    if (!a.dx[0] && !a.dx[1]) return;
    a.wide = a.n % 4 == 0 && wide4(x) && wide4(dy) && wide4(more) && wide4(a.dx[0]) &&
             wide4(a.dx[1]) && wide4(a.gamma);
    cuda_launch(c, is_long ? norm_back_kernel<true, T> : norm_back_kernel<false, T>,
                line_blocks(a.places, is_long), CUDA_THREADS, 0, a);
}

/* dy NULL: nothing comes back. */
template <class T> static void norm_weights(const keel_call *c, const T *x, const T *dy)
{
    const keel_layer_norm_args *a = cuda_args<keel_layer_norm_args>(c);
    const norm_args<T> f = norm_args_of<T>(c);
    column_results<2> to = {};
    to.at[0] = a->scale ? static_cast<float *>(c->weight_grad[0]) : nullptr;
    to.at[1] = a->center ? static_cast<float *>(c->weight_grad[a->scale]) : nullptr;
    if (!to.at[0] && !to.at[1]) return;
    const int64_t places = dy ? f.places : 0;
    if (f.n % 4 == 0 && wide4(x) && wide4(dy))
        column_fours<2>(c, to, places, f.n, norm_columns<T, true>{ x, dy, f.stats, f.n });
    else
        column_fours<2>(c, to, places, f.n, norm_columns<T, false>{ x, dy, f.stats, f.n });
}

static inline keel_status norm_prepare(keel_prepare *p)
{
    const int64_t n = norm_length(p->node),
                  places = p->rows * (keel_row_count(&p->node->in[0]) / n);
    return cuda_prepare(p, p->pass == KEEL_WEIGHTS ? column_scratch(places, n, 2) : 0);
}

#define NORM_KERNEL(stem)                                                                          \
    CUDA_KERNEL(stem) = { .op = &keel_op_##stem,                                                   \
                          .name = "cuda",                                                          \
                          .prepare = norm_prepare,                                                 \
                          .run = { forward<float>, backward<float>, weights<float> },              \
                          .narrow = { forward<bf16>, backward<bf16>, weights<bf16> },              \
                          .half = { forward<f16>, backward<f16>, weights<f16> } }

#endif
