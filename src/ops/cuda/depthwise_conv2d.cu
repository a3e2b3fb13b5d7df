/* See ops/depthwise_conv2d.c. A thread has four neighbouring channels of a place, on the way back
 * of a pixel. The gradient of the kernel is a sum over all places for each tap and filter. */
#include "ops/cuda/_columns.h"

namespace
{
struct window_dim {
    int64_t in, out, size, stride, dilation, pad;

    /* The pixel that tap k of the window at output o reads; below 0: none. */
    __device__ __forceinline__ int64_t pixel(int64_t o, int64_t k) const
    {
        const int64_t i = o * stride + k * dilation - pad;
        return i < in ? i : -1;
    }
    /* The output whose window reads pixel i with tap k; below 0: none. */
    __device__ __forceinline__ int64_t output(int64_t i, int64_t k) const
    {
        int64_t at = i + pad - k * dilation;
        if (at < 0 || take(&at, stride)) return -1;
        return at < out ? at : -1;
    }
};

struct window {
    window_dim h, w;
    int64_t rows, c, k, m; /* channels, filters, filters of a channel */
    bool wide;
};

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const float *kernel, const float *bias, const window s,
                   int64_t all)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, groups = (s.k + 3) / 4;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t q = 4 * take(&row, groups), n = s.k - q;
        const int64_t w = take(&row, s.w.out), h = take(&row, s.h.out);
        const T *image = x + row * s.h.in * s.w.in * s.c;
        float sum[4] = { 0, 0, 0, 0 }, p[4], by[4];
        if (bias) load_some(sum, bias + q, n, false);
        for (int64_t i = 0; i < s.h.size; i++)
            for (int64_t j = 0; j < s.w.size; j++) {
                const int64_t at_h = s.h.pixel(h, i), at_w = s.w.pixel(w, j);
                if (at_h < 0 || at_w < 0) continue;
                const T *at = image + (at_h * s.w.in + at_w) * s.c;
                if (s.m == 1)
                    load_some(p, at + q, n, s.wide);
                else
                    for (int e = 0; e < 4; e++) p[e] = e < n ? to_f(at[(q + e) / s.m]) : 0;
                load_some(by, kernel + (i * s.w.size + j) * s.k + q, n, false);
                for (int e = 0; e < 4; e++) sum[e] += p[e] * by[e];
            }
        store_some(y + ((row * s.h.out + h) * s.w.out + w) * s.k + q, sum, n, s.wide);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const float *kernel, const window s, int64_t all, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, groups = (s.c + 3) / 4;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t c = 4 * take(&row, groups), n = s.c - c;
        const int64_t w = take(&row, s.w.in), h = take(&row, s.h.in);
        const int64_t in = ((row * s.h.in + h) * s.w.in + w) * s.c + c;
        const T *image = dy + row * s.h.out * s.w.out * s.k;
        float sum[4] = { 0, 0, 0, 0 }, g[4], by[4], old[4];
        for (int64_t i = 0; i < s.h.size; i++)
            for (int64_t j = 0; j < s.w.size; j++) {
                const int64_t at_h = s.h.output(h, i), at_w = s.w.output(w, j);
                if (at_h < 0 || at_w < 0) continue;
                const T *at = image + (at_h * s.w.out + at_w) * s.k;
                const float *filter = kernel + (i * s.w.size + j) * s.k;
                if (s.m == 1) {
                    load_some(g, at + c, n, s.wide);
                    load_some(by, filter + c, n, false);
                    for (int e = 0; e < 4; e++) sum[e] += g[e] * by[e];
                    continue;
                }
                for (int e = 0; e < 4; e++)
                    for (int64_t q = (c + e) * s.m; e < n && q < (c + e + 1) * s.m; q++)
                        sum[e] += to_f(at[q]) * filter[q];
            }
        if (adds) load_some(old, dx + in, n, s.wide);
        for (int e = 0; adds && e < 4; e++) sum[e] += old[e];
        store_some(dx + in, sum, n, s.wide);
    }
}

/* A column is a tap of a filter. */
template <class T> struct tap_columns {
    const T *x, *dy;
    window s;
    __device__ __forceinline__ void operator()(int64_t place, int64_t column, double *sum) const
    {
        int64_t tap = column, row = place;
        const int64_t q = take(&tap, s.k), j = take(&tap, s.w.size);
        const int64_t w = take(&row, s.w.out), h = take(&row, s.h.out);
        const int64_t at_h = s.h.pixel(h, tap), at_w = s.w.pixel(w, j);
        if (at_h < 0 || at_w < 0) return;
        const int64_t pixel = (row * s.h.in + at_h) * s.w.in + at_w;
        sum[0] += to_f(x[pixel * s.c + (s.m == 1 ? q : q / s.m)]) * to_f(dy[place * s.k + q]);
    }
};

template <class T> struct bias_columns {
    const T *dy;
    int64_t k;
    __device__ __forceinline__ void operator()(int64_t place, int64_t q, double *sum) const
    {
        sum[0] += to_f(dy[place * k + q]);
    }
};

window window_of(const keel_call *c)
{
    const keel_conv2d_args *a = cuda_args<keel_conv2d_args>(c);
    const int64_t *in = c->node->in[0].shape.dim, *out = c->node->out[0].shape.dim;
    const int64_t *kernel = c->node->weight[0].shape.dim;
    window s = {};
    s.h = { in[0], out[0], kernel[0], a->strides[0], a->dilation[0], a->pad[0] };
    s.w = { in[1], out[1], kernel[1], a->strides[1], a->dilation[1], a->pad[2] };
    s.rows = c->rows;
    s.c = in[2];
    s.k = out[2];
    s.m = s.k / s.c;
    return s;
}

template <class T> void forward(const keel_call *c)
{
    window s = window_of(c);
    const int64_t all = s.rows * s.h.out * s.w.out * ((s.k + 3) / 4);
    T *y = cuda_out<T>(c);
    const T *x = cuda_in<T>(c, 0);
    s.wide = s.k % 4 == 0 && s.c % 4 == 0 && wide4(x) && wide4(y);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, y, x,
                static_cast<const float *>(c->weight[0]),
                c->node->n_weight > 1 ? static_cast<const float *>(c->weight[1]) : nullptr, s, all);
}

template <class T> void backward(const keel_call *c)
{
    window s = window_of(c);
    const int64_t all = s.rows * s.h.in * s.w.in * ((s.c + 3) / 4);
    T *dx = cuda_in_grad<T>(c, 0);
    const T *dy = cuda_out_grad<T>(c);
    s.wide = s.k % 4 == 0 && s.c % 4 == 0 && wide4(dx) && wide4(dy);
    if (dx)
        cuda_launch(c, backward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, dx, dy,
                    static_cast<const float *>(c->weight[0]), s, all, c->in_adds[0]);
}

template <class T> void weights(const keel_call *c)
{
    const window s = window_of(c);
    const int64_t places = s.rows * s.h.out * s.w.out;
    float *dw = static_cast<float *>(c->weight_grad[0]);
    float *db = c->node->n_weight > 1 ? static_cast<float *>(c->weight_grad[1]) : nullptr;
    if (dw)
        columns<1>(c, { { dw } }, places, s.h.size * s.w.size * s.k,
                   tap_columns<T>{ cuda_in<T>(c, 0), cuda_out_grad<T>(c), s });
    if (db) columns<1>(c, { { db } }, places, s.k, bias_columns<T>{ cuda_out_grad<T>(c), s.k });
}

keel_status prepare(keel_prepare *p)
{
    const int64_t *out = p->node->out[0].shape.dim;
    const int64_t places = p->rows * out[0] * out[1], n = keel_row_count(&p->node->weight[0]);
    return cuda_prepare(p, p->pass == KEEL_WEIGHTS ? column_scratch(places, n, 1) : 0);
}
} // namespace

CUDA_KERNEL(depthwise_conv2d) = { .op = &keel_op_depthwise_conv2d,
                                  .name = "cuda",
                                  .prepare = prepare,
                                  .run = { forward<float>, backward<float>, weights<float> },
                                  .narrow = { forward<bf16>, backward<bf16>, weights<bf16> },
                                  .half = { forward<f16>, backward<f16>, weights<f16> } };
