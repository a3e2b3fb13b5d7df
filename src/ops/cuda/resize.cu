/* See ops/resize.c. First the table of weights, a thread for each place of the output, in the order
 * of operations of the host; then a thread has an element of the output, or of the input, which
 * adds up what went to the outputs that see it, in their order. */
#include "ops/cuda/_axis.h"
#include <math.h>
extern "C" {
#include "ops/resize.h"
}

namespace
{
struct sizes {
    keel_resize_args a;
    axis_lines x;
    int64_t taps;
    float radius, inverse, widen, scale;
};

struct weights { /* out[o] = sum over t of weight[o][t] seen[first[o] + t] */
    int64_t *first;
    float *weight;
};

__device__ __forceinline__ float kernel_of(keel_resize_method method, float x)
{
    const float pi = 3.14159265358979323846f;
    if (method == KEEL_RESIZE_BILINEAR) return x < 1 ? 1 - x : 0;
    if (method == KEEL_RESIZE_BICUBIC) {
        if (x >= 2) return 0;
        if (x >= 1) return times(times(times(-0.5f, x) + 2.5f, x) - 4, x) + 2;
        return times(times(times(1.5f, x) - 2.5f, x), x) + 1;
    }
    const float radius = method == KEEL_RESIZE_LANCZOS3 ? 3 : 5;
    if (x > radius) return 0;
    if (x <= 1e-3f) return 1;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

__device__ __forceinline__ void divide(float *w, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += w[i];
    for (int64_t i = 0; fabsf(sum) >= 1000 * 0x1p-126f && i < n; i++) w[i] *= 1 / sum;
}

__device__ int64_t by_moved_kernel(const sizes &s, float *w, int64_t o)
{
    const float reach = times(s.radius, s.widen), last = (float)(s.a.length - 1);
    const float at =
        times((float)o + 0.5f, s.inverse) - times((float)s.a.translation, s.inverse) - 0.5f;
    float sum = 0;
    if (!(at >= -0.5f && at <= last + 0.5f)) return 0;
    const float from = fmaxf(ceilf(at - reach), 0), to = fminf(floorf(at + reach), last);
    const int64_t n = (int64_t)to - (int64_t)from + 1;
    for (int64_t i = 0; i < n; i++)
        sum += w[i] = kernel_of(s.a.method, fabsf(at - (from + (float)i)) / s.widen);
    const bool some = fabsf(sum) > 1000 * 0x1p-23f;
    for (int64_t i = 0; i < n; i++) w[i] = some ? w[i] / sum : 0;
    return (int64_t)from;
}

__device__ int64_t by_kernel(const sizes &s, float *w, int64_t o)
{
    const float reach = times(s.radius, s.widen), last = (float)(s.a.length - 1);
    const float at = times((float)o + 0.5f, s.inverse);
    float from = ceilf(at - reach - 0.5f), to = floorf(at + reach - 0.5f);
    from = from < 0 ? 0 : from > last ? last : from;
    to = to < 0 ? 0 : to > last ? last : to;
    const int64_t n = (int64_t)to - (int64_t)from + 1;
    for (int64_t i = 0; i < n; i++)
        w[i] = kernel_of(s.a.method, fabsf((from + (float)i + 0.5f - at) * (1 / s.widen)));
    divide(w, n);
    return (int64_t)from;
}

__device__ int64_t by_cubic_table(const sizes &s, float *w, int64_t o)
{
    const float at = times((float)o + 0.5f, s.scale) - 0.5f, left = floorf(at);
    const float share = rintf((at - left) * 1024) / 1024;
    int64_t first = 0, n = 0;
    for (int i = 0; i < 4; i++) {
        const int64_t from = (int64_t)left - 1 + i;
        const float away = i < 2 ? (float)(1 - i) + share : (float)(i - 1) - share;
        if (from < 0 || from >= s.a.length) continue;
        if (n == 0) first = from;
        w[n++] = kernel_of(s.a.method, away);
    }
    divide(w, n);
    return first;
}

__device__ int64_t by_area(const sizes &s, float *w, int64_t o)
{
    const float from = times((float)o, s.scale), to = times((float)(o + 1), s.scale);
    const int64_t first = (int64_t)floorf(from);
    for (int64_t i = 0; i < s.taps; i++) {
        const float v = (float)(first + i);
        if (v >= to || first + i >= s.a.length) break;
        w[i] = (v < from     ? (v + 1 > to ? s.scale : v + 1 - from)
                : v + 1 > to ? to - v
                             : 1) /
               s.scale;
    }
    return first;
}

__device__ int64_t by_neighbours(const sizes &s, float *w, int64_t o)
{
    const float last = (float)(s.a.length - 1), at = times((float)o + 0.5f, s.scale);
    const float left = floorf(at - 0.5f);
    w[0] = 1;
    if (s.a.method == KEEL_RESIZE_NEAREST) return (int64_t)(at < last ? floorf(at) : last);
    if (left < 0) return 0; /* both neighbours are the one at the border */
    if (left < last) {
        w[1] = at - 0.5f - left;
        w[0] = 1 - w[1];
    }
    return (int64_t)left;
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) weights_kernel(const weights t, const sizes s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t o = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; o < s.a.size; o += step) {
        float *w = t.weight + o * s.taps;
        for (int64_t i = 0; i < s.taps; i++) w[i] = 0;
        if (s.a.moves) {
            t.first[o] = by_moved_kernel(s, w, o);
        } else if (s.a.size == s.a.length) {
            t.first[o] = o;
            w[0] = 1;
        } else if (s.radius > 0) {
            t.first[o] = by_kernel(s, w, o);
        } else if (s.a.method == KEEL_RESIZE_BICUBIC) {
            t.first[o] = by_cubic_table(s, w, o);
        } else if (s.a.method == KEEL_RESIZE_AREA) {
            t.first[o] = by_area(s, w, o);
        } else {
            t.first[o] = by_neighbours(s, w, o);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const weights t, int64_t all, const sizes s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < all; i += step) {
        int64_t outer = i;
        const int64_t side = take(&outer, s.x.inner), o = take(&outer, s.a.size);
        const T *from = x + outer * s.x.n * s.x.inner + side;
        float sum = 0, outside = 0;
        bool some = false; /* so that one element stays as it is, -0 too */
        for (int64_t k = 0; k < s.taps; k++) {
            const float weight = t.weight[o * s.taps + k];
            const int64_t at = s.a.begin + t.first[o] + k;
            if (weight == 0) continue;
            if (at < 0 || at >= s.x.n) {
                outside += weight * (float)s.a.fill;
                continue;
            }
            const float v = times(weight, to_f(from[at * s.x.inner]));
            sum = some ? sum + v : v;
            some = true;
        }
        y[i] = to_value<T>(outside != 0 ? sum + outside : sum);
    }
}

/* The first output that may see place p, counted from `begin`: all before it end before p. Places
 * that move may go backwards, and are looked through. */
__device__ __forceinline__ int64_t first_of(const weights &t, const sizes &s, int64_t p)
{
    int64_t from = 0;
    for (int64_t n = s.a.moves ? 0 : s.a.size; n > 0;) {
        const int64_t half = n / 2;
        if (t.first[from + half] + s.taps <= p) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const weights t, const sizes s, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < s.x.lines * s.x.n;
         i += step) {
        int64_t outer = i;
        const int64_t side = take(&outer, s.x.inner), p = take(&outer, s.x.n) - s.a.begin;
        const T *from = dy + outer * s.a.size * s.x.inner + side;
        float sum = adds ? to_f(dx[i]) : 0;
        for (int64_t o = first_of(t, s, p); o < s.a.size; o++) {
            const int64_t k = p - t.first[o];
            if (k < 0 && !s.a.moves) break;
            if (k < 0 || k >= s.taps) continue;
            const float weight = t.weight[o * s.taps + k];
            if (weight != 0) sum += times(weight, to_f(from[o * s.x.inner]));
        }
        dx[i] = to_value<T>(sum);
    }
}

sizes sizes_of(const keel_call *c)
{
    const keel_resize_args *a = cuda_args<keel_resize_args>(c);
    return { *a,
             axis_lines_at(c->node->in[0], a->axis, c->rows),
             keel_resize_taps(a),
             (float)keel_resize_radius(a),
             keel_resize_inverse(a),
             keel_resize_widen(a),
             (float)a->length / (float)a->size };
}

weights weights_of(const keel_call *c, const sizes &s)
{
    int64_t *first = static_cast<int64_t *>(c->scratch);
    const weights t = { first, reinterpret_cast<float *>(first + s.a.size) };
    cuda_launch(c, weights_kernel, cuda_blocks(s.a.size), CUDA_THREADS, 0, t, s);
    return t;
}

template <class T> void forward(const keel_call *c)
{
    const sizes s = sizes_of(c);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), weights_of(c, s), cuda_count(c), s);
}

template <class T> void backward(const keel_call *c)
{
    const sizes s = sizes_of(c);
    if (!c->in_grad[0]) return;
    cuda_launch(c, backward_kernel<T>, cuda_blocks(s.x.lines * s.x.n), CUDA_THREADS, 0,
                cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), weights_of(c, s), s, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    return cuda_prepare(p, p->node->scratch);
}
} // namespace

CUDA_KERNEL(resize) = { .op = &keel_op_resize,
                        .name = "cuda",
                        .prepare = prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
