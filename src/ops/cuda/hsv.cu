/* See ops/hsv.c. A thread has a colour. */
#include "ops/cuda/_colour.h"
extern "C" {
#include "ops/hsv.h"
}

namespace
{
__device__ __forceinline__ three to_hsv(const three &x)
{
    const colour c = colour_of(x);
    float hue = 0;
    if (c.range > 0) {
        hue = (float)c.most / 3 + (x.at(after(c.most, 1)) - x.at(after(c.most, 2))) / (6 * c.range);
        if (hue < 0) hue += 1;
    }
    return { { hue, c.v > 0 ? c.range / c.v : 0, c.v } };
}

__device__ __forceinline__ three to_hsv_back(const three &dy, const three &x)
{
    const colour c = colour_of(x);
    const int plus = after(c.most, 1), minus = after(c.most, 2);
    three dx = { { 0, 0, 0 } };
    dx.add(c.most, dy.v[2]);
    if (c.v > 0) {
        dx.add(c.most, dy.v[1] * x.at(c.least) / (c.v * c.v));
        dx.add(c.least, -(dy.v[1] / c.v));
    }
    if (c.range > 0) {
        const float by = dy.v[0] / (6 * c.range);
        const float by_range = by * (x.at(plus) - x.at(minus)) / c.range;
        dx.add(plus, by);
        dx.add(minus, -by);
        dx.add(c.most, -by_range);
        dx.add(c.least, by_range);
    }
    return dx;
}

/* How much of colour k the hue has, 0 to 1, and how it changes with the hue. */
__device__ __forceinline__ float part_of(float hue, int k, float *slope)
{
    const float from = 6 * hue - (k == 0 ? 3.0f : k == 1 ? 2.0f : 4.0f), away = fabsf(from);
    const float v = k == 0 ? away - 1 : 2 - away, sign = from < 0 ? -6 : 6;
    *slope = v > 0 && v < 1 ? (k == 0 ? sign : -sign) : 0;
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

__device__ __forceinline__ three to_rgb(const three &x)
{
    three y;
    float slope;
    for (int k = 0; k < 3; k++)
        y.v[k] = (1 - x.v[1] + x.v[1] * part_of(x.v[0], k, &slope)) * x.v[2];
    return y;
}

__device__ __forceinline__ three to_rgb_back(const three &dy, const three &x)
{
    three dx = { { 0, 0, 0 } };
    for (int k = 0; k < 3; k++) {
        float slope;
        const float part = part_of(x.v[0], k, &slope);
        dx.v[0] += dy.v[k] * x.v[2] * x.v[1] * slope;
        dx.v[1] += dy.v[k] * x.v[2] * (part - 1);
        dx.v[2] += dy.v[k] * (1 - x.v[1] + x.v[1] * part);
    }
    return dx;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, int64_t colours, bool rgb)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < colours; t += step) {
        const three from = load3(x + 3 * t);
        store3(y + 3 * t, rgb ? to_rgb(from) : to_hsv(from), false);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *x, const T *dy, int64_t colours, bool rgb, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < colours; t += step) {
        const three from = load3(x + 3 * t), g = load3(dy + 3 * t);
        store3(dx + 3 * t, rgb ? to_rgb_back(g, from) : to_hsv_back(g, from), adds);
    }
}

template <class T> void forward(const keel_call *c)
{
    const int64_t colours = cuda_count(c) / 3;
    cuda_launch(c, forward_kernel<T>, cuda_blocks(colours), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), colours, cuda_args<keel_hsv_args>(c)->to_rgb);
}

template <class T> void backward(const keel_call *c)
{
    const int64_t colours = cuda_count(c) / 3;
    if (!c->in_grad[0]) return;
    cuda_launch(c, backward_kernel<T>, cuda_blocks(colours), CUDA_THREADS, 0, cuda_in_grad<T>(c, 0),
                cuda_in<T>(c, 0), cuda_out_grad<T>(c), colours, cuda_args<keel_hsv_args>(c)->to_rgb,
                c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(hsv) = { .op = &keel_op_hsv,
                     .name = "cuda",
                     .prepare = cuda_always,
                     .run = { forward<float>, backward<float> },
                     .narrow = { forward<bf16>, backward<bf16> },
                     .half = { forward<f16>, backward<f16> } };
