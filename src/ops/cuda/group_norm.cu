/* See ops/group_norm.c. A block has a group of a row; its elements are runs of `width` neighbours,
 * one run for each place. */
#include "ops/cuda/_columns.h"
#include "ops/cuda/_lines.h"
extern "C" {
#include "ops/group_norm.h"
}

namespace
{
struct groups {
    int64_t places, channels, count, width, lines; /* lines: groups of all rows */
    const float *gamma, *beta;
    float *stats;
    double epsilon;

    /* Element j of a line: its place in memory, and its channel. */
    __device__ __forceinline__ int64_t at(int64_t line, int64_t j, int64_t *channel) const
    {
        int64_t place = j, row = line;
        const int64_t inside = take(&place, width), group = take(&row, count);
        *channel = group * width + inside;
        return (row * places + place) * channels + *channel;
    }
};

typedef line_threads<true> threads;

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS) forward_kernel(T *y, const T *x, const groups g)
{
    SHARED(double, room, 33);
    const int64_t n = g.places * g.width;
    int64_t k;
    for (int64_t line = threads::first_line(); line < g.lines; line += threads::step()) {
        double mean = 0, squares = 0;
        for (int64_t j = threads::number(); j < n; j += threads::WIDTH)
            mean += to_f(x[g.at(line, j, &k)]);
        mean = threads::fold(mean, room, gpu_plus()) / (double)n;
        for (int64_t j = threads::number(); j < n; j += threads::WIDTH) {
            const double v = to_f(x[g.at(line, j, &k)]) - mean;
            squares += v * v;
        }
        squares = threads::fold(squares, room, gpu_plus());
        const double r = 1 / sqrt(squares / (double)n + g.epsilon);
        if (g.stats && threads::number() == 0) {
            g.stats[2 * line] = (float)mean;
            g.stats[2 * line + 1] = (float)r;
        }
        for (int64_t j = threads::number(); j < n; j += threads::WIDTH) {
            const int64_t at = g.at(line, j, &k);
            const double hat = (to_f(x[at]) - mean) * r;
            y[at] = to_value<T>(
                (float)(hat * (g.gamma ? g.gamma[k] : 1.0f) + (g.beta ? g.beta[k] : 0.0f)));
        }
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *x, const T *dy, const groups g, bool adds)
{
    SHARED(double, room, 33);
    const int64_t n = g.places * g.width;
    int64_t k;
    for (int64_t line = threads::first_line(); line < g.lines; line += threads::step()) {
        const float mean = g.stats[2 * line], r = g.stats[2 * line + 1];
        double sum = 0, product = 0;
        for (int64_t j = threads::number(); j < n; j += threads::WIDTH) {
            const int64_t at = g.at(line, j, &k);
            const float slope = to_f(dy[at]) * (g.gamma ? g.gamma[k] : 1);
            sum += slope;
            product += slope * (to_f(x[at]) - mean) * r;
        }
        sum = threads::fold(sum, room, gpu_plus()) / (double)n;
        product = threads::fold(product, room, gpu_plus()) / (double)n;
        for (int64_t j = threads::number(); j < n; j += threads::WIDTH) {
            const int64_t at = g.at(line, j, &k);
            const float slope = to_f(dy[at]) * (g.gamma ? g.gamma[k] : 1);
            const float v = r * (slope - (float)sum - (to_f(x[at]) - mean) * r * (float)product);
            dx[at] = to_value<T>(adds ? to_f(dx[at]) + v : v);
        }
    }
}

/* dgamma, dbeta */
template <class T> struct group_columns {
    const T *x, *dy;
    groups g;
    __device__ __forceinline__ void operator()(int64_t place, int64_t k, double *sum) const
    {
        const int64_t line = place / g.places * g.count + k / g.width;
        const float slope = to_f(dy[place * g.channels + k]);
        sum[0] +=
            slope * (to_f(x[place * g.channels + k]) - g.stats[2 * line]) * g.stats[2 * line + 1];
        sum[1] += slope;
    }
};

groups groups_of(const keel_call *c)
{
    const keel_group_norm_args *a = cuda_args<keel_group_norm_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    groups g = {};
    g.channels = in.dim[in.rank - 1];
    g.places = keel_row_count(&c->node->in[0]) / g.channels;
    g.count = a->groups;
    g.width = g.channels / g.count;
    g.lines = c->rows * g.count;
    g.gamma = a->scale ? static_cast<const float *>(c->weight[0]) : nullptr;
    g.beta = a->center ? static_cast<const float *>(c->weight[a->scale]) : nullptr;
    g.stats = c->node->n_saved ? static_cast<float *>(c->saved[0]) : nullptr;
    g.epsilon = a->epsilon;
    return g;
}

template <class T> void forward(const keel_call *c)
{
    const groups g = groups_of(c);
    cuda_launch(c, forward_kernel<T>, threads::blocks(g.lines), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), g);
}

template <class T> void backward(const keel_call *c)
{
    const groups g = groups_of(c);
    if (c->in_grad[0])
        cuda_launch(c, backward_kernel<T>, threads::blocks(g.lines), CUDA_THREADS, 0,
                    cuda_in_grad<T>(c, 0), cuda_in<T>(c, 0), cuda_out_grad<T>(c), g, c->in_adds[0]);
}

template <class T> void weights(const keel_call *c)
{
    const keel_group_norm_args *a = cuda_args<keel_group_norm_args>(c);
    const groups g = groups_of(c);
    column_results<2> to = {};
    to.at[0] = a->scale ? static_cast<float *>(c->weight_grad[0]) : nullptr;
    to.at[1] = a->center ? static_cast<float *>(c->weight_grad[a->scale]) : nullptr;
    if (to.at[0] || to.at[1])
        columns<2>(c, to, c->rows * g.places, g.channels,
                   group_columns<T>{ cuda_in<T>(c, 0), cuda_out_grad<T>(c), g });
}

keel_status prepare(keel_prepare *p)
{
    const keel_shape &in = p->node->in[0].shape;
    const int64_t n = in.dim[in.rank - 1], places = p->rows * (keel_shape_count(&in) / n);
    return cuda_prepare(p, p->pass == KEEL_WEIGHTS ? column_scratch(places, n, 2) : 0);
}
} // namespace

CUDA_KERNEL(group_norm) = { .op = &keel_op_group_norm,
                            .name = "cuda",
                            .prepare = prepare,
                            .run = { forward<float>, backward<float>, weights<float> },
                            .narrow = { forward<bf16>, backward<bf16>, weights<bf16> },
                            .half = { forward<f16>, backward<f16>, weights<f16> } };
