/* Lines along the axis of an op, which is an argument of it: element j of line t is at
 * begin(t) + j step. */
#ifndef KEEL_OPS_CUDA_AXIS_H
#define KEEL_OPS_CUDA_AXIS_H
#include "ops/cuda/_lines.h"

struct axis_lines {
    int64_t lines, n, inner; /* inner: lines that lie side by side, which is also their step */

    __device__ __forceinline__ int64_t begin(int64_t line) const
    {
        if (inner == 1) return line * n;
        int64_t outer = line;
        const int64_t i = take(&outer, inner);
        return outer * n * inner + i;
    }
};

/* The lines of `rows` rows of s. */
static inline axis_lines axis_lines_at(const keel_spec &s, int64_t given, int64_t rows)
{
    const int axis = (int)(given < 0 ? given + s.shape.rank : given);
    axis_lines l = { rows, s.shape.dim[axis], 1 };
    for (int d = 0; d < s.shape.rank; d++) {
        if (d != axis) l.lines *= s.shape.dim[d];
        if (d > axis) l.inner *= s.shape.dim[d];
    }
    return l;
}

/* s: an input or output of the node. */
static inline axis_lines axis_lines_of(const keel_node *node, const keel_spec &s, int64_t rows)
{
    return axis_lines_at(s, static_cast<const keel_axis_args *>(node->args)->axis, rows);
}

static inline axis_lines axis_lines_of(const keel_call *c)
{
    return axis_lines_of(c->node, c->node->in[0], c->rows);
}

/* How many threads a line has: one where neighbours have neighbouring lines, a warp or a block. */
static inline int axis_width(const axis_lines &l)
{
    return l.inner > 1 || l.n < 8 ? 1 : l.n > LINE_LONG ? CUDA_THREADS : GPU_WARP;
}

/* Launches kernel_of(width), where an integral constant says how many threads a line has. */
template <class K, class... A>
static void axis_launch(const keel_call *c, const axis_lines &l, K kernel_of, A... args)
{
    const auto launch = [&](auto width) {
        cuda_launch(c, kernel_of(width), line_of_threads<width()>::blocks(l.lines), CUDA_THREADS, 0,
                    args...);
    };
    switch (axis_width(l)) {
    case 1:
        return launch(std::integral_constant<int, 1>());
    case GPU_WARP:
        return launch(std::integral_constant<int, GPU_WARP>());
    default:
        return launch(std::integral_constant<int, CUDA_THREADS>());
    }
}

/* The same with an output, an input and its lines. */
template <class T, class K> static void axis_forward(const keel_call *c, K kernel_of)
{
    const axis_lines l = axis_lines_of(c);
    axis_launch(c, l, kernel_of, cuda_out<T>(c), cuda_in<T>(c, 0), l);
}

#endif
