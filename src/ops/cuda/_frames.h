/* Frames of a signal: what frames and overlap share. A thread has a number of the window, in
 * scratch, and then a number of the result, or of the gradient. */
#ifndef KEEL_OPS_CUDA_FRAMES_H
#define KEEL_OPS_CUDA_FRAMES_H
#include "ops/cuda/_window.h"
extern "C" {
#include "ops/frames.h"
}

struct frame_lines {
    int64_t lines, n, frames, size, stride; /* n: numbers of the signal */
    int64_t before;                         /* the first number of frame 0 is so many before it */
};

/* As keel_frame_factor. */
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    frame_factors_kernel(double *to, const keel_frames_args a)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < a.size; i += step) {
        double w = window_at(a.window, a.size, i), sum = 0;
        int64_t k = i;
        if (a.inverse) {
            for (k = take(&k, a.stride); k < a.size; k += a.stride) {
                const double other = window_at(a.window, a.size, k);
                sum += times(other, other);
            }
            w /= sum;
        }
        to[i] = w;
    }
}

/* The same of a window that the layer gives. */
static inline double frame_given_factor(const keel_frames_args &a, int64_t i)
{
    const double w = window_given_at(a.window, a.size, i);
    double sum = 0;
    if (!a.inverse) return w;
    for (int64_t k = i % a.stride; k < a.size; k += a.stride) {
        const double other = window_given_at(a.window, a.size, k);
        sum += other * other;
    }
    return w / sum;
}

static inline const double *frame_factors(const keel_call *c)
{
    const keel_frames_args &a = *cuda_args<keel_frames_args>(c);
    double *factor = static_cast<double *>(c->scratch);
    if (window_is_given(a.window))
        give(c, factor, a.size, 1, [&](int64_t i) { return frame_given_factor(a, i); });
    else
        cuda_launch(c, frame_factors_kernel, cuda_blocks(a.size), CUDA_THREADS, 0, factor, a);
    return factor;
}

static inline keel_status frames_prepare(keel_prepare *p)
{
    const keel_frames_args *a = static_cast<const keel_frames_args *>(p->node->args);
    return cuda_prepare(p, a->size * (int64_t)sizeof(double));
}

/* The sum of what the frames of a line have at place q of them all, each times its number of the
 * window. get(k): number k of the frames, one after another. */
template <class GET>
static __device__ __forceinline__ double frames_sum(GET get, const double *factor,
                                                    const frame_lines &s, int64_t q)
{
    double sum = 0;
    int64_t f = q - s.size + 1 > 0 ? q - s.size + s.stride : 0;
    for (take(&f, s.stride); f < s.frames && f * s.stride <= q; f++) {
        const int64_t i = q - f * s.stride;
        sum += get(f * s.size + i) * factor[i];
    }
    return sum;
}

/* The same of number `at` of a signal that frames see, and see in a mirror at its ends. */
template <class GET>
static __device__ __forceinline__ double frames_of(GET get, const double *factor,
                                                   const frame_lines &s, int64_t at)
{
    const int64_t last = s.n - 1;
    double sum = frames_sum(get, factor, s, at + s.before);
    if (at > 0 && at <= s.before) sum += frames_sum(get, factor, s, s.before - at);
    if (at < last && last - at <= s.before)
        sum += frames_sum(get, factor, s, 2 * last - at + s.before);
    return sum;
}

/* The number of the signal that is number i of frame f. */
static __device__ __forceinline__ int64_t frames_at(const frame_lines &s, int64_t f, int64_t i)
{
    int64_t at = f * s.stride + i - s.before;
    if (at < 0) at = -at;
    return at < s.n ? at : 2 * (s.n - 1) - at;
}

#endif
