/* Ops of two values with NumPy's broadcasting: see ops/binary.h. M has
 *
 *     float value(float a, float b);  float slope(int which, float a, float b)
 *
 * A row of the output is the row of dims that are not 1; an operand has a step for each of them, 0
 * where it repeats. */
#ifndef KEEL_OPS_CUDA_BINARY_H
#define KEEL_OPS_CUDA_BINARY_H
#include "ops/cuda/_binary_grid.h"
#include "ops/cuda/_each.h"

struct binary_side {
    int64_t step[KEEL_RANK_MAX]; /* of each dim of the output */
    int64_t row;                 /* elements of a row; 0: a constant */
};

struct binary_shape {
    int rank;
    int64_t dim[KEEL_RANK_MAX], count; /* of a row of the output */
    binary_side side[2];
    float constant;
};

static inline binary_shape binary_shape_of(const keel_node *n)
{
    const keel_binary_args *args = static_cast<const keel_binary_args *>(n->args);
    const keel_shape *out = &n->out[0].shape;
    binary_shape s = {};
    s.rank = out->rank;
    s.count = keel_row_count(&n->out[0]);
    s.constant = n->n_in == 1 ? (float)args->constant : 0;
    for (int d = 0; d < out->rank; d++) s.dim[d] = out->dim[d];
    for (int which = 0; which < 2; which++) {
        if (n->n_in == 1 && which == (args->left ? 0 : 1)) continue;
        const keel_shape *in = &n->in[n->n_in == 1 ? 0 : which].shape;
        int64_t step = 1;
        for (int d = in->rank - 1; d >= 0; d--) {
            s.side[which].step[d] = in->dim[d] == 1 ? 0 : step;
            step *= in->dim[d];
        }
        s.side[which].row = step;
    }
    return s;
}

/* Whether the dims of a row go together as places and channels. */
static inline bool binary_is_grid(const binary_shape &s, int64_t rows, int each, binary_grid *g)
{
    bool had[2] = { false, false };
    int kinds = 0;
    *g = {};
    g->rows = rows;
    g->places = g->c = 1;
    for (int d = s.rank - 1; d >= 0; d--) {
        bool has[2];
        if (s.dim[d] == 1) continue;
        for (int i = 0; i < 2; i++) has[i] = s.side[i].step[d] != 0;
        kinds += kinds == 0 || has[0] != had[0] || has[1] != had[1];
        for (int i = 0; i < 2; i++) {
            had[i] = has[i];
            (kinds == 1 ? g->side[i].of_channel : g->side[i].size) = has[i];
        }
        (kinds == 1 ? g->c : g->places) *= s.dim[d];
    }
    for (int i = 0; i < 2; i++) {
        grid_side *side = &g->side[i];
        const int64_t of_channels = side->of_channel ? g->c : 1;
        side->of_place = side->size ? of_channels : 0;
        side->size = s.side[i].row;
        side->constant = s.constant;
    }
    g->groups = (g->c + each - 1) / each;
    return kinds <= 2;
}

template <class T>
static __device__ __forceinline__ float binary_at(const binary_shape &s, int which, const T *x,
                                                  int64_t row, int64_t i)
{
    const binary_side &side = s.side[which];
    if (side.row == 0) return s.constant;
    int64_t at = row * side.row;
    if (side.row == s.count) return to_f(x[at + i]);
    for (int d = s.rank - 1; d >= 0; d--) at += take(&i, s.dim[d]) * side.step[d];
    return to_f(x[at]);
}

template <class M, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    binary_forward_kernel(T *y, const T *a, const T *b, int64_t all, const binary_shape s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < all; i += step) {
        int64_t row = i;
        const int64_t e = take(&row, s.count);
        y[i] = to_value<T>(M::value(binary_at(s, 0, a, row, e), binary_at(s, 1, b, row, e)));
    }
}

/* The gradient of operand `which`: a thread for each element of it adds up those of the output that
 * it was repeated to, in their order. */
template <class M, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    binary_backward_kernel(T *dx, const T *a, const T *b, const T *dy, int which, bool adds,
                           int64_t rows, const binary_shape s)
{
    const binary_side &own = s.side[which];
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < rows * own.row;
         t += step) {
        int64_t row = t, base = 0, out_step = 1, times = 1;
        int64_t rest = take(&row, own.row);
        for (int d = s.rank - 1; d >= 0; d--) { /* of the output: the first that belongs to it */
            if (own.step[d]) {
                base += take(&rest, s.dim[d]) * out_step;
            } else {
                times *= s.dim[d];
            }
            out_step *= s.dim[d];
        }
        double sum = 0;
        for (int64_t k = 0; k < times; k++) {
            int64_t i = base, left = k, at = 1;
            for (int d = s.rank - 1; d >= 0; d--) {
                if (!own.step[d]) i += take(&left, s.dim[d]) * at;
                at *= s.dim[d];
            }
            const float x = binary_at(s, 0, a, row, i), z = binary_at(s, 1, b, row, i);
            sum += M::slope(which, x, z) * to_f(dy[row * s.count + i]);
        }
        dx[t] = to_value<T>((float)(adds ? to_f(dx[t]) + sum : sum));
    }
}

template <class M> struct binary_value {
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return M::value(x[0], x[1]);
    }
};

template <class M> struct binary_slope {
    int which;
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return M::slope(which, x[0], x[1]) * x[2];
    }
};

template <class T> struct binary_operands {
    const T *at[2];
    bool alike; /* both have as many elements as the output */
};

template <class T>
static binary_operands<T> binary_operands_of(const keel_call *c, const binary_shape &s)
{
    binary_operands<T> o = {};
    o.alike = s.side[0].row == s.count && s.side[1].row == s.count;
    for (int which = 0; which < 2; which++)
        if (s.side[which].row) o.at[which] = cuda_in<T>(c, c->node->n_in == 1 ? 0 : which);
    return o;
}

template <class M, class T> static void binary_forward(const keel_call *c)
{
    const binary_shape s = binary_shape_of(c->node);
    const binary_operands<T> o = binary_operands_of<T>(c, s);
    T *y = cuda_out<T>(c);
    const int64_t all = cuda_count(c);
    binary_grid g;
    if (o.alike)
        each<2, T>(c, y, false, all, { o.at[0], o.at[1] }, binary_value<M>{});
    else if (binary_is_grid(s, c->rows, EACH<T>, &g))
        grid_each<M, false, T>(c, { y, { o.at[0], o.at[1] }, nullptr, g, 0, false });
    else
        cuda_launch(c, binary_forward_kernel<M, T>, cuda_blocks(all), CUDA_THREADS, 0, y, o.at[0],
                    o.at[1], all, s);
}

template <class M, class T> static void binary_backward(const keel_call *c)
{
    const binary_shape s = binary_shape_of(c->node);
    const binary_operands<T> o = binary_operands_of<T>(c, s);
    const T *dy = cuda_out_grad<T>(c);
    for (int which = 0; which < 2; which++) {
        const int k = c->node->n_in == 1 ? 0 : which;
        if (!s.side[which].row || !c->in_grad[k]) continue;
        T *dx = cuda_in_grad<T>(c, k);
        if (o.alike)
            each<3, T>(c, dx, c->in_adds[k], cuda_count(c), { o.at[0], o.at[1], dy },
                       binary_slope<M>{ which });
        else if (binary_grid g; binary_is_grid(s, c->rows, EACH<T>, &g))
            grid_gradient<M, T>(c, { dx, { o.at[0], o.at[1] }, dy, g, which, c->in_adds[k] });
        else
            cuda_launch(c, binary_backward_kernel<M, T>, cuda_blocks(c->rows * s.side[which].row),
                        CUDA_THREADS, 0, dx, o.at[0], o.at[1], dy, which, c->in_adds[k], c->rows,
                        s);
    }
}

#define BINARY_KERNEL(stem, M)                                                                     \
    CUDA_KERNEL(stem) = { .op = &keel_op_##stem,                                                   \
                          .name = "cuda",                                                          \
                          .prepare = cuda_always,                                                  \
                          .run = { binary_forward<M, float>, binary_backward<M, float> },          \
                          .narrow = { binary_forward<M, bf16>, binary_backward<M, bf16> },         \
                          .half = { binary_forward<M, f16>, binary_backward<M, f16> } }

#endif
