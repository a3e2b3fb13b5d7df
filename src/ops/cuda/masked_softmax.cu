/* See ops/masked_softmax.c. */
#include "ops/cuda/_lines.h"
#include "ops/cuda/_masks.h"
#include "ops/cuda/_move.h"

namespace
{
struct scores {
    int64_t s, t, lines, all; /* lines of a row, and of all */
    bool uniform;
};

template <bool LONG, class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *out, uint8_t *blind, const T *in, const scores a, const cuda_masks<T> m)
{
    typedef line_threads<LONG> threads;
    SHARED(float, room, 33);
    for (int64_t line = threads::first_line(); line < a.all; line += threads::step()) {
        const T *x = in + line * a.s;
        T *y = out + line * a.s;
        int64_t row = line, first, end;
        const int64_t own = take(&row, a.lines);
        float most = -INFINITY, sum = 0, any = 0;
        m.range(own % a.t, a.s, &first, &end);
        for (int64_t j = first + threads::number(); j < end; j += threads::WIDTH) {
            if (!m.let(row, own * a.s + j)) continue;
            most = to_f(x[j]) > most ? to_f(x[j]) : most;
            any = 1;
        }
        most = threads::fold(most, room, gpu_greater());
        any = threads::fold(any, room, gpu_greater());
        for (int64_t j = first + threads::number(); j < end; j += threads::WIDTH)
            if (m.let(row, own * a.s + j)) sum += expf(to_f(x[j]) - most);
        sum = threads::fold(sum, room, gpu_plus());
        const float none = any == 0 && a.uniform ? 1 / (float)a.s : 0;
        for (int64_t j = threads::number(); j < a.s; j += threads::WIDTH) {
            const bool seen = any != 0 && j >= first && j < end && m.let(row, own * a.s + j);
            y[j] = to_value<T>(seen ? expf(to_f(x[j]) - most) / sum : none);
        }
        if (blind && threads::number() == 0) blind[line] = any == 0;
    }
}

template <bool LONG, class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *in_grad, const T *out, const T *out_grad, const uint8_t *blind,
                    const scores a, bool adds)
{
    typedef line_threads<LONG> threads;
    SHARED(float, room, 33);
    for (int64_t line = threads::first_line(); line < a.all; line += threads::step()) {
        const T *y = out + line * a.s, *dy = out_grad + line * a.s;
        T *dx = in_grad + line * a.s;
        float sum = 0;
        for (int64_t j = threads::number(); j < a.s; j += threads::WIDTH)
            sum += to_f(y[j]) * to_f(dy[j]);
        sum = threads::fold(sum, room, gpu_plus());
        for (int64_t j = threads::number(); j < a.s; j += threads::WIDTH) {
            const float g = blind[line] ? 0 : to_f(y[j]) * (to_f(dy[j]) - sum);
            dx[j] = to_value<T>(adds ? to_f(dx[j]) + g : g);
        }
    }
}

scores scores_of(const keel_call *c)
{
    const keel_shape &in = c->node->in[0].shape;
    const int64_t s = in.dim[in.rank - 1], lines = keel_row_count(&c->node->in[0]) / s;
    return { s, in.dim[in.rank - 2], lines, c->rows * lines,
             cuda_args<keel_masked_softmax_args>(c)->uniform };
}

template <class T> void forward(const keel_call *c)
{
    const scores a = scores_of(c);
    const bool is_long = a.s > LINE_LONG;
    uint8_t *blind = c->node->n_saved ? static_cast<uint8_t *>(c->saved[0]) : nullptr;
    cuda_launch(
        c, is_long ? forward_kernel<true, T> : forward_kernel<false, T>,
        line_blocks(a.all, is_long), CUDA_THREADS, 0, cuda_out<T>(c), blind, cuda_in<T>(c, 0), a,
        cuda_masks_of<T>(c, 1, c->node->in[0].shape, *cuda_args<keel_masked_softmax_args>(c)));
}

template <class T> void backward(const keel_call *c)
{
    const scores a = scores_of(c);
    const bool is_long = a.s > LINE_LONG;
    if (c->in_grad[0])
        cuda_launch(c, is_long ? backward_kernel<true, T> : backward_kernel<false, T>,
                    line_blocks(a.all, is_long), CUDA_THREADS, 0, cuda_in_grad<T>(c, 0),
                    cuda_out<T>(c), cuda_out_grad<T>(c), static_cast<const uint8_t *>(c->saved[0]),
                    a, c->in_adds[0]);
    for (int k = 1; k < c->node->n_in; k++) no_gradient<T>(c, k);
}

keel_status prepare(keel_prepare *p)
{
    return p->node->n_in - 1 > MASKS_MAX ? KEEL_EUNSUP : cuda_always(p);
}
} // namespace

CUDA_KERNEL(masked_softmax) = { .op = &keel_op_masked_softmax,
                                .name = "cuda",
                                .prepare = prepare,
                                .run = { forward<float>, backward<float> },
                                .narrow = { forward<bf16>, backward<bf16> },
                                .half = { forward<f16>, backward<f16> } };
