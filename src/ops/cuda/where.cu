/* See ops/where.c. As in _binary.h, an element of a value that repeats adds up what comes back to
 * it in the order of the output. */
#include "ops/cuda/_move.h"

namespace
{
enum { CONDITION, LEFT, RIGHT };

struct operand {
    int64_t row, step[KEEL_RANK_MAX]; /* elements of a row; 0: a constant */
};

struct choice {
    int rank;
    int64_t dim[KEEL_RANK_MAX], count; /* of a row of the output */
    operand of[3];
    float constant[3];
};

__device__ __forceinline__ int64_t place_of(const choice &s, const operand &o, int64_t row,
                                            int64_t i)
{
    int64_t at = row * o.row;
    if (o.row == s.count) return at + i;
    for (int d = s.rank - 1; d >= 0; d--) at += take(&i, s.dim[d]) * o.step[d];
    return at;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *condition, const T *left, const T *right, int64_t all,
                   const choice s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t i = take(&row, s.count);
        const bool is_left = to_f(condition[place_of(s, s.of[CONDITION], row, i)]) > 0.5f;
        const operand &o = is_left ? s.of[LEFT] : s.of[RIGHT];
        const T *x = is_left ? left : right;
        y[t] = o.row ? x[place_of(s, o, row, i)]
                     : to_value<T>(is_left ? s.constant[LEFT] : s.constant[RIGHT]);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *condition, const T *dy, bool is_left, bool adds, int64_t rows,
                    const choice s, const operand own)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < rows * own.row;
         t += step) {
        int64_t row = t, base = 0, out_step = 1, times = 1;
        int64_t rest = take(&row, own.row);
        for (int d = s.rank - 1; d >= 0; d--) { /* of the output: the first that belongs to it */
            if (own.step[d])
                base += take(&rest, s.dim[d]) * out_step;
            else
                times *= s.dim[d];
            out_step *= s.dim[d];
        }
        double sum = 0;
        for (int64_t k = 0; k < times; k++) {
            int64_t i = base, left = k, at = 1;
            for (int d = s.rank - 1; d >= 0; d--) {
                if (!own.step[d]) i += take(&left, s.dim[d]) * at;
                at *= s.dim[d];
            }
            if ((to_f(condition[place_of(s, s.of[CONDITION], row, i)]) > 0.5f) == is_left)
                sum += to_f(dy[row * s.count + i]);
        }
        dx[t] = to_value<T>((float)(adds ? to_f(dx[t]) + sum : sum));
    }
}

/* The input that has a value; -1: it is a constant. */
int input_of(const keel_node *n, int which)
{
    const keel_where_args *a = static_cast<const keel_where_args *>(n->args);
    if (which == CONDITION) return 0;
    if (a->fixed[which - LEFT]) return -1;
    return which == LEFT || a->fixed[0] ? 1 : 2;
}

choice choice_of(const keel_node *n)
{
    const keel_where_args *a = static_cast<const keel_where_args *>(n->args);
    const keel_shape &out = n->out[0].shape;
    choice s = {};
    s.rank = out.rank;
    s.count = keel_row_count(&n->out[0]);
    for (int d = 0; d < out.rank; d++) s.dim[d] = out.dim[d];
    for (int which = CONDITION; which <= RIGHT; which++) {
        const int k = input_of(n, which);
        int64_t step = 1;
        if (which != CONDITION) s.constant[which] = (float)a->constant[which - LEFT];
        if (k < 0) continue;
        for (int d = out.rank - 1; d >= 0; d--) {
            s.of[which].step[d] = n->in[k].shape.dim[d] == 1 ? 0 : step;
            step *= n->in[k].shape.dim[d];
        }
        s.of[which].row = step;
    }
    return s;
}

template <class T> const T *value_of(const keel_call *c, int which)
{
    const int k = input_of(c->node, which);
    return k < 0 ? nullptr : cuda_in<T>(c, k);
}

template <class T> void forward(const keel_call *c)
{
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), value_of<T>(c, LEFT), value_of<T>(c, RIGHT), cuda_count(c),
                choice_of(c->node));
}

template <class T> void backward(const keel_call *c)
{
    const choice s = choice_of(c->node);
    for (int which = LEFT; which <= RIGHT; which++) {
        const int k = input_of(c->node, which);
        if (k >= 0 && c->in_grad[k])
            cuda_launch(c, backward_kernel<T>, cuda_blocks(c->rows * s.of[which].row), CUDA_THREADS,
                        0, cuda_in_grad<T>(c, k), cuda_in<T>(c, 0), cuda_out_grad<T>(c),
                        which == LEFT, c->in_adds[k], c->rows, s, s.of[which]);
    }
    no_gradient<T>(c, 0);
}
} // namespace

MOVE_KERNEL(where);
