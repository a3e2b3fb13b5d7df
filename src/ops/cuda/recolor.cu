/* See ops/recolor.c. What changes with the image: its draws, which one thread makes, and for
 * contrast and stretch what a block finds of each channel; then a thread has a pixel. */
#include "ops/cuda/_chance.h"
#include "ops/cuda/_colour.h"
#include "ops/cuda/_lines.h"
#include <math.h>
extern "C" {
#include "ops/recolor.h"
}

namespace
{
struct image {
    keel_recolor_args a;
    cuda_chance chance;
    int64_t rows, n, channels; /* n: pixels */
    float low, high;
};

struct draws {
    double first, second;
};

/* Of a channel of an image: its mean, and how much of the gradient each pixel has through it; or
 * the least number, how far the largest is above it, where both are, and what they give back. */
struct channel {
    float from, range, back[2];
    int64_t at[2];
};

__global__ void __launch_bounds__(CUDA_THREADS, 1) draws_kernel(draws *to, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows; t += step)
        to[t] = { cuda_draw(n.chance, t, n.a.first, n.a.range[0]),
                  cuda_draw(n.chance, t, n.a.first + 1, n.a.range[1]) };
}

__device__ __forceinline__ float clip(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

__device__ __forceinline__ float contrast(float x, float mean, float f)
{
    return times(x - mean, f) + mean;
}

struct key_least {
    __device__ __forceinline__ uint64_t operator()(uint64_t a, uint64_t b) const
    {
        return a < b ? a : b;
    }
};

struct key_most {
    __device__ __forceinline__ uint64_t operator()(uint64_t a, uint64_t b) const
    {
        return a > b ? a : b;
    }
};

/* The place of the first of the least numbers, or of the largest; nothing is beside a NaN in front,
 * and others count for nothing. */
template <bool LARGEST> __device__ __forceinline__ uint64_t key_of(float x, int64_t place)
{
    const unsigned none = LARGEST ? 0 : UINT32_MAX, own = ascending(x == 0 ? 0 : x);
    const unsigned number = x == x ? own : place == 0 ? ~none : none;
    const unsigned low = (unsigned)place;
    return (uint64_t)number << 32 | (LARGEST ? ~low : low);
}

/* BACK: dy is the gradient. */
template <bool BACK, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    channels_kernel(channel *to, const T *x, const T *dy, const draws *drawn, const image n)
{
    typedef line_threads<true> threads;
    SHARED(double, room, 33);
    SHARED(uint64_t, keys, 33);
    for (int64_t line = threads::first_line(); line < n.rows * n.channels;
         line += threads::step()) {
        int64_t row = line;
        const int64_t begin = take(&row, n.channels) + row * n.n * n.channels;
        const T *own = x + begin, *g = dy + begin;
        const float f = (float)drawn[row].first;
        channel c = {};
        double back[2] = { 0, 0 };
        if (n.a.kind == KEEL_RECOLOR_CONTRAST) {
            double sum = 0;
            for (int64_t i = threads::number(); i < n.n; i += threads::WIDTH)
                sum += to_f(own[i * n.channels]);
            c.from = (float)(threads::fold(sum, room, gpu_plus()) / (double)n.n);
        } else {
            uint64_t least = UINT64_MAX, most = 0;
            for (int64_t i = threads::number(); i < n.n; i += threads::WIDTH) {
                const float v = to_f(own[i * n.channels]);
                least = key_least()(least, key_of<false>(v, i));
                most = key_most()(most, key_of<true>(v, i));
            }
            c.at[0] = (unsigned)threads::fold(least, keys, key_least());
            c.at[1] = (unsigned)~(unsigned)threads::fold(most, keys, key_most());
            c.from = to_f(own[c.at[0] * n.channels]);
            c.range = to_f(own[c.at[1] * n.channels]) - c.from;
        }
        for (int64_t i = threads::number(); BACK && i < n.n; i += threads::WIDTH) {
            const float v = to_f(own[i * n.channels]), d = to_f(g[i * n.channels]);
            if (n.a.kind == KEEL_RECOLOR_CONTRAST) {
                const float y = contrast(v, c.from, f);
                back[0] += y >= n.low && y <= n.high ? d : 0;
            } else if (c.range > 0) {
                const float part = (v - c.from) / c.range, by = d * ((n.high - n.low) / c.range);
                back[0] += by * (1 - part);
                back[1] += by * part;
            }
        }
        for (int e = 0; BACK && e < 2; e++) {
            const double all = threads::fold(back[e], room, gpu_plus());
            c.back[e] = n.a.kind == KEEL_RECOLOR_CONTRAST ? (float)(all / (double)n.n) * (1 - f)
                                                          : (float)all;
        }
        if (threads::number() == 0) to[line] = c;
    }
}

/* ---- numbers by themselves --------------------------------------------------------------------
 */

/* What x, of a channel, becomes; slope: what its gradient is multiplied by. */
__device__ __forceinline__ float change_one(const image &n, const draws &d, const channel *c,
                                            float x, float *slope)
{
    const float f = (float)d.first, low = n.low, high = n.high, range = high - low;
    const bool does = d.second < d.first;
    float y;
    switch (n.a.kind) {
    case KEEL_RECOLOR_BRIGHTNESS:
        y = x + times(f, range);
        *slope = y >= low && y <= high ? 1 : 0;
        return clip(y, low, high);
    case KEEL_RECOLOR_CONTRAST:
        y = contrast(x, c->from, f);
        *slope = y >= low && y <= high ? f : 0;
        return clip(y, low, high);
    case KEEL_RECOLOR_INVERT:
        *slope = does ? -1 : 1;
        return does ? high - x : x;
    case KEEL_RECOLOR_POSTERIZE: { /* steps: flat wherever there is a slope */
        const bool bytes = low == 0 && high == 255;
        const unsigned mask = 0xFFu << (8 - (int)d.first) & 0xFFu;
        y = clip(bytes ? x : (x - low) / range * 255, 0, 255);
        y = (float)((unsigned)y & mask);
        *slope = 0;
        return bytes ? y : y / 255 * range + low;
    }
    case KEEL_RECOLOR_SOLARIZE: {
        const float all = times((x - low) / range, 255.0f) + f, from = (float)d.second;
        y = clip(all, 0, 255);
        *slope = all >= 0 && all <= 255 ? (all < from ? 1.0f : -1.0f) : 0;
        return (y < from ? y : 255 - y) / 255 * range + low;
    }
    case KEEL_RECOLOR_GRAY: /* of one channel, which is gray */
        *slope = 1;
        return x;
    case KEEL_RECOLOR_FADE:
        *slope = x >= low && x <= high ? 1 : 0;
        return clip(x, low, high);
    default: /* stretch */
        *slope = c->range > 0 ? range / c->range : 1;
        return c->range > 0 ? clip((x - c->from) / c->range, 0, 1) * range + low : x;
    }
}

/* ---- colours ----------------------------------------------------------------------------------
 */

__device__ __forceinline__ float saturation(const colour &c)
{
    return c.v > 0 ? c.range / c.v : 0;
}

/* A gray pixel has no hue: red is taken. */
__device__ __forceinline__ float away_of(const colour &c, const three &x, int k)
{
    return c.range > 0 ? (c.v - x.v[k]) / c.range : (float)(k > 0);
}

__device__ __forceinline__ three saturate(const image &n, const three &x, float factor)
{
    const colour c = colour_of(x);
    const float s = clip(saturation(c) * factor, n.low, n.high);
    three y;
    for (int k = 0; k < 3; k++) y.v[k] = c.v * (1 - s * away_of(c, x, k));
    return y;
}

__device__ __forceinline__ three saturate_back(const image &n, const three &x, const three &dy,
                                               float factor)
{
    const colour c = colour_of(x);
    const float s = saturation(c) * factor, bound = clip(s, n.low, n.high);
    const bool free = s >= n.low && s <= n.high && c.v > 0; /* then s v / range is the factor */
    three dx = { { 0, 0, 0 } };
    for (int k = 0; k < 3; k++) {
        const float away = away_of(c, x, k), g = dy.v[k] * bound * c.v / c.range;
        if (free) {
            dx.add(c.most, dy.v[k] * (1 - factor));
            dx.v[k] += dy.v[k] * factor;
            continue;
        }
        dx.add(c.most, dy.v[k] * (1 - bound * away));
        if (!(c.range > 0)) continue;
        dx.v[k] += g;
        dx.add(c.most, -(g * (1 - away)));
        dx.add(c.least, -(g * away));
    }
    return dx;
}

/* How far below v a hue of h sixths of a turn has colour k, 0 to 1, and how that moves with h. */
__device__ __forceinline__ float below(float h, int k, float *slope)
{
    const float at = h - 2 * (float)k; /* red is 0, green 2, blue 4 */
    const float turn = at > 3 ? at - 6 : at < -3 ? at + 6 : at, away = fabsf(turn);
    *slope = away > 1 && away < 2 ? (turn < 0 ? -1.0f : 1.0f) : 0;
    return clip(away - 1, 0, 1);
}

struct turned {
    three unit;
    colour c;
    float hue, share, range; /* hue: after the turn; share: of its sector */
};

__device__ __forceinline__ turned turn_of(const image &n, const three &x, float turn)
{
    turned t;
    for (int k = 0; k < 3; k++) t.unit.v[k] = (x.v[k] - n.low) / (n.high - n.low);
    t.c = colour_of(t.unit);
    t.range = saturation(t.c) * t.c.v; /* 0 where v is not above 0 */
    t.share = 0;
    float hue = 0;
    if (t.c.range > 0) {
        t.share = (t.unit.at(after(t.c.most, 1)) - t.unit.at(after(t.c.most, 2))) / t.c.range;
        hue = 2 * (float)t.c.most + t.share;
        hue = hue < 0 ? hue + 6 : hue;
    }
    hue += times(6.0f, turn);
    t.hue = hue > 6 ? hue - 6 : hue < 0 ? hue + 6 : hue;
    return t;
}

__device__ __forceinline__ three hue(const image &n, const three &x, float turn)
{
    const turned t = turn_of(n, x, turn);
    three y;
    float slope;
    for (int k = 0; k < 3; k++)
        y.v[k] =
            clip(t.c.v - times(t.range, below(t.hue, k, &slope)), 0, 1) * (n.high - n.low) + n.low;
    return y;
}

__device__ __forceinline__ three hue_back(const image &n, const three &x, const three &dy,
                                          float turn)
{
    const turned t = turn_of(n, x, turn);
    three dx = { { 0, 0, 0 } };
    for (int k = 0; k < 3; k++) {
        float slope;
        const float down = below(t.hue, k, &slope), v = t.c.v - times(t.range, down);
        if (!(v >= 0 && v <= 1)) continue;
        dx.add(t.c.most, dy.v[k]);
        if (!(t.range > 0)) continue;
        const float by_range = down - slope * t.share; /* of the range; the hue has it too */
        dx.add(t.c.most, -(dy.v[k] * by_range));
        dx.add(t.c.least, dy.v[k] * by_range);
        dx.add(after(t.c.most, 1), -(dy.v[k] * slope));
        dx.add(after(t.c.most, 2), dy.v[k] * slope);
    }
    return dx;
}

/* Towards gray. */
__device__ __forceinline__ three fade(const three &x, float share, float low, float high)
{
    const float gray = 0.2989f * x.v[0] + 0.5870f * x.v[1] + 0.1140f * x.v[2];
    three y;
    for (int k = 0; k < 3; k++) y.v[k] = clip(x.v[k] + times(share, gray - x.v[k]), low, high);
    return y;
}

__device__ __forceinline__ three fade_back(const three &x, const three &dy, float share, float low,
                                           float high)
{
    const float gray = 0.2989f * x.v[0] + 0.5870f * x.v[1] + 0.1140f * x.v[2];
    three dx = { { 0, 0, 0 } };
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        const float y = x.v[k] + times(share, gray - x.v[k]);
        if (!(y >= low && y <= high)) continue;
        dx.v[k] = (1 - share) * dy.v[k];
        sum += share * dy.v[k];
    }
    dx.v[0] += 0.2989f * sum;
    dx.v[1] += 0.5870f * sum;
    dx.v[2] += 0.1140f * sum;
    return dx;
}

/* Gray is not clipped. */
__device__ __forceinline__ three change_colour(const image &n, const draws &d, const three &x)
{
    switch (n.a.kind) {
    case KEEL_RECOLOR_SATURATE:
        return saturate(n, x, (float)(d.first / (1 - d.first + 1e-7)));
    case KEEL_RECOLOR_HUE:
        return hue(n, x, (float)((d.second > 0.5 ? -0.5 : 0.5) * d.first));
    case KEEL_RECOLOR_GRAY:
        return fade(x, d.second < d.first ? 1.0f : 0.0f, -INFINITY, INFINITY);
    default:
        return fade(x, (float)d.first, n.low, n.high);
    }
}

__device__ __forceinline__ three change_colour_back(const image &n, const draws &d, const three &x,
                                                    const three &dy)
{
    switch (n.a.kind) {
    case KEEL_RECOLOR_SATURATE:
        return saturate_back(n, x, dy, (float)(d.first / (1 - d.first + 1e-7)));
    case KEEL_RECOLOR_HUE:
        return hue_back(n, x, dy, (float)((d.second > 0.5 ? -0.5 : 0.5) * d.first));
    case KEEL_RECOLOR_GRAY:
        return fade_back(x, dy, d.second < d.first ? 1.0f : 0.0f, -INFINITY, INFINITY);
    default:
        return fade_back(x, dy, (float)d.first, n.low, n.high);
    }
}

/* ---- images -----------------------------------------------------------------------------------
 */

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    colours_kernel(T *y, const T *x, const draws *drawn, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows * n.n;
         t += step) {
        int64_t row = t;
        take(&row, n.n);
        store3(y + 3 * t, change_colour(n, drawn[row], load3(x + 3 * t)), false);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    colours_back_kernel(T *dx, const T *x, const T *dy, const draws *drawn, const image n,
                        bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows * n.n;
         t += step) {
        int64_t row = t;
        take(&row, n.n);
        store3(dx + 3 * t, change_colour_back(n, drawn[row], load3(x + 3 * t), load3(dy + 3 * t)),
               adds);
    }
}

/* dy: NULL forward. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    each_kernel(T *to, const T *x, const T *dy, const draws *drawn, const channel *channels,
                const image n, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = n.rows * n.n * n.channels;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, n.channels), place = take(&row, n.n);
        const channel *c = channels ? channels + row * n.channels + k : nullptr;
        float slope, g;
        const float y = change_one(n, drawn[row], c, to_f(x[t]), &slope);
        if (!dy) {
            to[t] = to_value<T>(y);
            continue;
        }
        g = slope != 0 ? slope * to_f(dy[t]) : 0;
        if (n.a.kind == KEEL_RECOLOR_CONTRAST) g += c->back[0];
        if (n.a.kind == KEEL_RECOLOR_STRETCH)
            for (int e = 0; e < 2; e++) g -= place == c->at[e] ? c->back[e] : 0;
        to[t] = to_value<T>(adds ? to_f(to[t]) + g : g);
    }
}

image image_of(const keel_call *c)
{
    const keel_recolor_args *a = cuda_args<keel_recolor_args>(c);
    const int64_t *dim = c->node->in[0].shape.dim;
    return { *a,
             cuda_chance_of(c),
             c->rows,
             dim[0] * dim[1],
             dim[2],
             (float)a->values.low,
             (float)a->values.high };
}

bool has_colours(const image &n)
{
    const keel_recolor_kind kind = n.a.kind;
    return kind == KEEL_RECOLOR_SATURATE || kind == KEEL_RECOLOR_HUE ||
           ((kind == KEEL_RECOLOR_GRAY || kind == KEEL_RECOLOR_FADE) && n.channels == 3);
}

bool has_channels(keel_recolor_kind kind)
{
    return kind == KEEL_RECOLOR_CONTRAST || kind == KEEL_RECOLOR_STRETCH;
}

template <bool BACK, class T> void run(const keel_call *c, T *to, bool adds)
{
    const image n = image_of(c);
    const T *x = cuda_in<T>(c, 0), *dy = BACK ? cuda_out_grad<T>(c) : nullptr;
    draws *drawn = static_cast<draws *>(c->scratch);
    channel *channels = nullptr;
    cuda_launch(c, draws_kernel, cuda_blocks(n.rows), CUDA_THREADS, 0, drawn, n);
    if (has_colours(n)) {
        const unsigned blocks = cuda_blocks(n.rows * n.n);
        if (BACK)
            cuda_launch(c, colours_back_kernel<T>, blocks, CUDA_THREADS, 0, to, x, dy, drawn, n,
                        adds);
        else
            cuda_launch(c, colours_kernel<T>, blocks, CUDA_THREADS, 0, to, x, drawn, n);
        return;
    }
    if (has_channels(n.a.kind)) {
        channels = reinterpret_cast<channel *>(drawn + n.rows);
        cuda_launch(c, channels_kernel<BACK, T>, line_blocks(n.rows * n.channels, true),
                    CUDA_THREADS, 0, channels, x, dy, drawn, n);
    }
    cuda_launch(c, each_kernel<T>, cuda_blocks(n.rows * n.n * n.channels), CUDA_THREADS, 0, to, x,
                dy, drawn, channels, n, adds);
}

template <class T> void forward(const keel_call *c)
{
    run<false>(c, cuda_out<T>(c), false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0]) run<true>(c, cuda_in_grad<T>(c, 0), c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const keel_shape &s = p->node->in[0].shape;
    const keel_recolor_args *a = static_cast<const keel_recolor_args *>(p->node->args);
    const int64_t channels = has_channels(a->kind) ? p->rows * s.dim[2] : 0;
    if (s.dim[0] * s.dim[1] > UINT32_MAX) return KEEL_EUNSUP;
    return cuda_prepare(p, p->rows * (int64_t)sizeof(draws) + channels * (int64_t)sizeof(channel));
}
} // namespace

CUDA_KERNEL(recolor) = { .op = &keel_op_recolor,
                         .name = "cuda",
                         .prepare = prepare,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
