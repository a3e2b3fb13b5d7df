/* See ops/warp.c, in the order of operations of the host, so that images are the same. A thread has
 * a row's projection, and then a pixel of the output. */
#include "ops/cuda/_chance.h"
#include "ops/cuda/_scatter.h"
extern "C" {
#include "ops/warp.h"
}

namespace
{
const int NUMBERS = 8; /* of a projection: a0 a1 a2 b0 b1 b2 c0 c1 */

struct image {
    keel_warp_args a;
    cuda_chance chance;
    int64_t rows, in[2], out[2], channels; /* height and width */
    bool whole;                            /* pixels as they are */
};

__device__ void lean(float *m, const image &n, int64_t row, double w, double h)
{
    const unsigned from = n.a.first;
    const double right = 1 + cuda_draw(n.chance, row, from + 4, n.a.range[2]);
    const double down = 1 + cuda_draw(n.chance, row, from + 7, n.a.range[2]);
    const double x = 1 + cuda_draw(n.chance, row, from + 8, n.a.range[2]);
    const double y = 1 + cuda_draw(n.chance, row, from + 9, n.a.range[2]);
    const double c0 = (y / down - 1) / times(x, w), c1 = (x / right - 1) / times(y, h);
    m[0] = (float)(times(c0, w) + 1 / right);
    m[4] = (float)(times(c1, h) + 1 / down);
    m[6] = (float)c0;
    m[7] = (float)c1;
}

/* By an angle about the middle (x, y). */
__device__ void turn(float *m, double radians, double x, double y)
{
    const double cosine = cos(radians), sine = sin(radians);
    m[0] = m[4] = (float)cosine;
    m[1] = (float)-sine;
    m[3] = (float)sine;
    m[2] = (float)(x - times(x, cosine) + times(y, sine));
    m[5] = (float)(y - times(x, sine) - times(y, cosine));
}

__device__ void project(float *m, const image &n, int64_t row)
{
    const keel_warp_args &a = n.a;
    const double h = (double)n.in[0], w = (double)n.in[1];
    const double middle[2] = { (h - 1) / 2, (w - 1) / 2 };
    const double first = cuda_draw(n.chance, row, a.first, a.range[0]);
    const double second = a.alike ? first : cuda_draw(n.chance, row, a.first + 1, a.range[1]);
    for (int i = 0; i < NUMBERS; i++) m[i] = i == 0 || i == 4 ? 1 : 0;
    switch (a.kind) {
    case KEEL_WARP_FLIP:
        if (first > 0.5) return;
        if (a.across) m[0] = -1, m[2] = (float)(n.in[1] - 1);
        if (a.down) m[4] = -1, m[5] = (float)(n.in[0] - 1);
        return;
    case KEEL_WARP_CROP:
        m[2] = (float)floor(times(second, (double)(n.in[1] - a.size[1] + 1)));
        m[5] = (float)floor(times(first, (double)(n.in[0] - a.size[0] + 1)));
        return;
    case KEEL_WARP_ROTATE:
        turn(m, times(first, 3.14159265358979323846 / 180), middle[1], middle[0]);
        return;
    case KEEL_WARP_ZOOM:
        m[0] = (float)second;
        m[2] = (float)times(middle[1], 1 - second);
        m[4] = (float)first;
        m[5] = (float)times(middle[0], 1 - first);
        return;
    case KEEL_WARP_TRANSLATE:
        m[2] = (float)times(-second, w);
        m[5] = (float)times(-first, h);
        return;
    case KEEL_WARP_SHEAR: {
        const double sign = cuda_draw(n.chance, row, a.first + 2, a.range[2]) > 0.5 ? -1 : 1;
        m[1] = (float)(sign * second);
        m[3] = (float)(sign * first);
        return;
    }
    case KEEL_WARP_LEAN:
        if (second < first) lean(m, n, row, w - 1, h - 1);
        return;
    case KEEL_WARP_MATRIX:
        for (int i = 0; i < NUMBERS; i++) m[i] = (float)a.matrix[i];
        return;
    }
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) numbers_kernel(float *m, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows; t += step)
        project(m + NUMBERS * t, n, t);
}

/* As inside, before and nearest of ops/_warp_spots.h. */
__device__ __forceinline__ float inside(float x, int64_t n, keel_warp_fill fill)
{
    const float last = (float)(n - 1), length = (float)n;
    const bool outside = (x < 0 || x > last) && n > 1;
    if (fill == KEEL_FILL_CONSTANT) return x;
    if (fill == KEEL_FILL_REFLECT && outside) {
        const float from = x < 0 ? -x - 1 : x;
        const float of_two = from - times(2 * length, floorf(from / (2 * length)));
        x = of_two >= length ? 2 * length - of_two - 1 : of_two;
    }
    if (fill == KEEL_FILL_WRAP && outside) {
        const float turns = truncf((x < 0 ? -x : x) / last);
        x = x < 0 ? x + times(length, turns + 1) : x - times(length, turns);
    }
    x = x > last ? last : x;
    return x < 0 ? 0 : x;
}

__device__ __forceinline__ int spot(float x, bool whole)
{
    const int number = (int)x;
    if (!whole) return number - (x < 0);
    return number + (x - (float)number >= 0.5f) - (x <= -0.5f);
}

/* The pixels that make one, of which there is the first alone where they are whole. */
struct seen {
    int top, left;
    float right, down; /* the shares of the right and of the lower ones */
    bool there;        /* false: nothing of the image */
};

__device__ __forceinline__ seen look(const image &n, const float *m, float i, float j)
{
    float at_x = times(m[0], j) + times(m[1], i) + m[2];
    float at_y = times(m[3], j) + times(m[4], i) + m[5];
    seen s;
    if (m[6] != 0 || m[7] != 0) {
        const float k = times(m[6], j) + times(m[7], i) + 1;
        at_x /= k != 0 ? k : NAN;
        at_y /= k;
    }
    at_x = inside(at_x, n.in[1], n.a.fill);
    at_y = inside(at_y, n.in[0], n.a.fill);
    s.there = at_x > -1 && at_x < (float)n.in[1] && at_y > -1 && at_y < (float)n.in[0];
    at_x = s.there ? at_x : 0;
    at_y = s.there ? at_y : 0;
    s.left = spot(at_x, n.whole);
    s.top = spot(at_y, n.whole);
    s.right = at_x - (float)s.left;
    s.down = at_y - (float)s.top;
    return s;
}

/* Element k of the pixel at (y, x), or what is outside. */
template <class T>
__device__ __forceinline__ float pixel(const T *from, const image &n, bool there, int y, int x,
                                       int64_t k)
{
    const bool in = there && y >= 0 && y < n.in[0] && x >= 0 && x < n.in[1];
    return in ? to_f(from[((int64_t)y * n.in[1] + x) * n.channels + k]) : (float)n.a.fill_value;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *to, const T *from, const float *numbers, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = n.rows * n.out[0] * n.out[1];
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const float j = (float)take(&row, n.out[1]), i = (float)take(&row, n.out[0]);
        const seen s = look(n, numbers + NUMBERS * row, i, j);
        const T *x = from + row * n.in[0] * n.in[1] * n.channels;
        T *y = to + t * n.channels;
        for (int64_t k = 0; k < n.channels; k++) {
            const float first = pixel(x, n, s.there, s.top, s.left, k);
            if (n.whole) {
                y[k] = to_value<T>(first);
                continue;
            }
            const float above = times(1 - s.right, first) +
                                times(s.right, pixel(x, n, s.there, s.top, s.left + 1, k));
            const float below = times(1 - s.right, pixel(x, n, s.there, s.top + 1, s.left, k)) +
                                times(s.right, pixel(x, n, s.there, s.top + 1, s.left + 1, k));
            y[k] = to_value<T>(times(1 - s.down, above) + times(s.down, below));
        }
    }
}

struct looks {
    const float *numbers;
    image n;

    __device__ __forceinline__ void operator()(int64_t row, int64_t pixel, scatter_seen *to) const
    {
        int64_t line = pixel;
        const float j = (float)take(&line, n.out[1]);
        const seen s = look(n, numbers + NUMBERS * row, (float)line, j);
        for (int p = 0; p < 4; p++) {
            const int64_t y = s.top + p / 2, x = s.left + p % 2;
            const bool in = s.there && y >= 0 && y < n.in[0] && x >= 0 && x < n.in[1];
            to->at[p] = in ? y * n.in[1] + x : -1;
            to->share[p] = (p / 2 ? s.down : 1 - s.down) * (p % 2 ? s.right : 1 - s.right);
        }
        if (n.whole) to->share[0] = 1;
    }
};

image image_of(const keel_call *c)
{
    const keel_warp_args *a = cuda_args<keel_warp_args>(c);
    const int64_t *in = c->node->in[0].shape.dim, *out = c->node->out[0].shape.dim;
    const bool part = a->kind == KEEL_WARP_FLIP || a->kind == KEEL_WARP_CROP;
    return { *a,    cuda_chance_of(c), c->rows, { in[0], in[1] }, { out[0], out[1] },
             in[2], part || a->nearest };
}

scatter_shape shape_of(const keel_node *n)
{
    const keel_warp_args *a = static_cast<const keel_warp_args *>(n->args);
    const int64_t *in = n->in[0].shape.dim, *out = n->out[0].shape.dim;
    const bool part = a->kind == KEEL_WARP_FLIP || a->kind == KEEL_WARP_CROP;
    return { out[0] * out[1], in[0] * in[1], in[2], part || a->nearest ? 1 : 4 };
}

float *numbers_of(const keel_call *c, const image &n)
{
    float *numbers = static_cast<float *>(c->scratch);
    cuda_launch(c, numbers_kernel, cuda_blocks(c->rows), CUDA_THREADS, 0, numbers, n);
    return numbers;
}

template <class T> void forward(const keel_call *c)
{
    const image n = image_of(c);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(c->rows * n.out[0] * n.out[1]), CUDA_THREADS, 0,
                cuda_out<T>(c), cuda_in<T>(c, 0), numbers_of(c, n), n);
}

template <class T> void backward(const keel_call *c)
{
    const image n = image_of(c);
    if (!c->in_grad[0]) return;
    float *numbers = numbers_of(c, n); /* eight of a row, so what follows is aligned */
    scatter(c, numbers + NUMBERS * c->rows, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c),
            shape_of(c->node), c->in_adds[0], looks{ numbers, n });
}

keel_status prepare(keel_prepare *p)
{
    const scatter_shape s = shape_of(p->node);
    if (!scatter_fits(s)) return KEEL_EUNSUP;
    return cuda_prepare(p, p->rows * NUMBERS * (int64_t)sizeof(float) +
                               (p->pass == KEEL_BACKWARD ? scatter_scratch(s, p->rows) : 0));
}
} // namespace

CUDA_KERNEL(warp) = { .op = &keel_op_warp,
                      .name = "cuda",
                      .prepare = prepare,
                      .run = { forward<float>, backward<float> },
                      .narrow = { forward<bf16>, backward<bf16> },
                      .half = { forward<f16>, backward<f16> } };
