/* See ops/elastic.c, in the order of operations of the host, so that images are the same. A thread
 * has a row's numbers, four normal draws, a place of a blur, and then a pixel. */
#include "ops/cuda/_chance.h"
#include "ops/cuda/_scatter.h"
#include <math.h>
extern "C" {
#include "ops/elastic.h"
}

namespace
{
const unsigned NOISE_BLOCK = 1; /* of draws: behind the three of the row */

struct bend {   /* of a row */
    double far; /* how far the field moves, at a draw of 1 */
    int64_t reach;
    bool bent;
};

/* In scratch; each row has its own. */
struct rooms {
    bend *row;
    double *window, *field, *room; /* [2 reach + 1], [H, W], [H, W] */
    int64_t longest;               /* of a window */
};

struct image {
    keel_elastic_args a;
    cuda_chance chance;
    int64_t rows, dim[3], pixels;
    float low, high;
};

__device__ void numbers_of(const image &n, int64_t row, bend *to, double *window)
{
    const double least = (double)(n.dim[0] < n.dim[1] ? n.dim[0] : n.dim[1]);
    const double most = (double)(n.dim[0] > n.dim[1] ? n.dim[0] : n.dim[1]);
    const double f = cuda_draw(n.chance, row, 2, n.a.range[2]);
    const double deviation = least * (0.05 * f);
    const int64_t reach = 3 * (int64_t)deviation;
    double sum = 0;
    *to = { most * (0.1 * f) * deviation, reach,
            deviation > 0 && cuda_draw(n.chance, row, 1, n.a.range[1]) <
                                 cuda_draw(n.chance, row, 0, n.a.range[0]) };
    if (!to->bent) return;
    for (int64_t k = -reach; k <= reach; k++) {
        const double x = (double)k / deviation;
        sum += window[k + reach] = exp(-0.5 * x * x);
    }
    for (int64_t k = 0; k <= 2 * reach; k++) window[k] /= sum;
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) numbers_kernel(const rooms r, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows; t += step)
        numbers_of(n, t, r.row + t, r.window + t * r.longest);
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) noise_kernel(const rooms r, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, fours = (n.pixels + 3) / 4;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows * fours;
         t += step) {
        int64_t row = t;
        const int64_t block = take(&row, fours);
        double *field = r.field + row * n.pixels + 4 * block, z[4];
        unsigned word[4];
        if (!r.row[row].bent) continue;
        cuda_philox(word, n.chance, row, NOISE_BLOCK + (unsigned)block);
        cuda_normals(z, word);
        for (int e = 0; e < 4; e++)
            if (4 * block + e < n.pixels) field[e] = r.row[row].far * z[e];
    }
}

/* The weighted mean of neighbours in dim d, with zeros beyond the ends. */
__global__ void __launch_bounds__(CUDA_THREADS)
    blur_kernel(double *to, const double *from, int d, const rooms r, const image n)
{
    const int64_t threads = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows * n.pixels;
         t += threads) {
        int64_t row = t;
        const int64_t j = take(&row, n.dim[1]), i = take(&row, n.dim[0]);
        const int64_t at = d == 0 ? i : j, length = n.dim[d], step = d == 0 ? n.dim[1] : 1;
        const int64_t reach = r.row[row].reach;
        const double *window = r.window + row * r.longest + reach;
        if (!r.row[row].bent) continue;
        const int64_t begin = at < reach ? -at : -reach;
        const int64_t end = length - 1 - at < reach ? length - 1 - at : reach;
        double sum = 0;
        for (int64_t k = begin; k <= end; k++) sum += times(window[k], from[t + k * step]);
        to[t] = sum;
    }
}

/* The place of n that is seen at i; -1: none. */
__device__ __forceinline__ int inside(int i, int n, keel_elastic_fill fill)
{
    if (i >= 0 && i < n) return i;
    if (fill == KEEL_ELASTIC_CONSTANT) return -1;
    if (fill == KEEL_ELASTIC_NEAREST) return i < 0 ? 0 : n - 1;
    if (fill == KEEL_ELASTIC_WRAP) return (i % n + n) % n;
    i = (i < 0 ? -i : i) % (2 * n);
    return i < n ? i : 2 * n - 1 - i;
}

/* What makes pixel `at` of a row: itself, where there is no field. */
struct looks {
    rooms r;
    image n;

    __device__ __forceinline__ void operator()(int64_t row, int64_t at, scatter_seen *to) const
    {
        const bool bent = r.row[row].bent, one = !bent || n.a.nearest;
        const float moved = bent ? (float)r.field[row * n.pixels + at] : 0;
        int64_t line = at;
        const float across = (float)take(&line, n.dim[1]) + moved, down = (float)line + moved;
        const float top = one ? rintf(down) : floorf(down);
        const float left = one ? rintf(across) : floorf(across);
        const float below = down - top, right = across - left;
        for (int p = 0; p < 4; p++) {
            const int i = inside((int)top + p / 2, (int)n.dim[0], n.a.fill);
            const int j = inside((int)left + p % 2, (int)n.dim[1], n.a.fill);
            to->at[p] = i < 0 || j < 0 ? -1 : i * n.dim[1] + j;
            to->share[p] = (p / 2 ? below : 1 - below) * (p % 2 ? right : 1 - right);
            if (one) to->share[p] = p == 0 ? 1 : 0;
            if (one && p > 0) to->at[p] = -1;
        }
    }
};

/* Channel k of what is seen, before it is clipped; a share of 0 counts as none. x: of the row. */
template <class T>
__device__ __forceinline__ float mean(const scatter_seen &s, const T *x, const image &n, int64_t k)
{
    float sum = 0;
    for (int p = 0; p < 4; p++) {
        const float v = s.at[p] < 0 ? (float)n.a.fill_value : to_f(x[s.at[p] * n.dim[2] + k]);
        if (s.share[p] != 0) sum += times(s.share[p], v);
    }
    return sum;
}

/* dy: NULL forward; else `to` becomes the gradient where nothing was clipped. */
template <class TO, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    pixels_kernel(TO *to, const T *x, const T *dy, const looks look)
{
    const image &n = look.n;
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows * n.pixels;
         t += step) {
        int64_t row = t;
        const int64_t at = take(&row, n.pixels);
        scatter_seen s;
        look(row, at, &s);
        for (int64_t k = 0; k < n.dim[2]; k++) {
            const int64_t e = t * n.dim[2] + k;
            const float v = mean(s, x + row * n.pixels * n.dim[2], n, k);
            const float y = v < n.low ? n.low : v > n.high ? n.high : v;
            to[e] = to_value<TO>(!dy ? y : v >= n.low && v <= n.high ? to_f(dy[e]) : 0);
        }
    }
}

int64_t longest_of(const keel_node *n)
{
    const keel_elastic_args *a = static_cast<const keel_elastic_args *>(n->args);
    const int64_t *dim = n->in[0].shape.dim;
    const double least = (double)(dim[0] < dim[1] ? dim[0] : dim[1]);
    return 6 * (int64_t)(least * (0.05 * a->range[2].high)) + 1;
}

looks looks_of(const keel_call *c)
{
    const keel_elastic_args *a = cuda_args<keel_elastic_args>(c);
    const int64_t *dim = c->node->in[0].shape.dim, longest = longest_of(c->node);
    const image n = { *a,
                      cuda_chance_of(c),
                      c->rows,
                      { dim[0], dim[1], dim[2] },
                      dim[0] * dim[1],
                      (float)a->values.low,
                      (float)a->values.high };
    bend *row = static_cast<bend *>(c->scratch);
    double *window = reinterpret_cast<double *>(row + c->rows);
    double *field = window + c->rows * longest, *room = field + c->rows * n.pixels;
    const rooms r = { row, window, field, room, longest };
    const unsigned blocks = cuda_blocks(c->rows * n.pixels);
    cuda_launch(c, numbers_kernel, cuda_blocks(c->rows), CUDA_THREADS, 0, r, n);
    cuda_launch(c, noise_kernel, cuda_blocks(c->rows * ((n.pixels + 3) / 4)), CUDA_THREADS, 0, r,
                n);
    cuda_launch(c, blur_kernel, blocks, CUDA_THREADS, 0, room, field, 1, r, n);
    cuda_launch(c, blur_kernel, blocks, CUDA_THREADS, 0, field, room, 0, r, n);
    return { r, n };
}

scatter_shape shape_of(const keel_node *n)
{
    const int64_t *dim = n->in[0].shape.dim;
    return { dim[0] * dim[1], dim[0] * dim[1], dim[2],
             static_cast<const keel_elastic_args *>(n->args)->nearest ? 1 : 4 };
}

template <class T> void forward(const keel_call *c)
{
    const T *x = cuda_in<T>(c, 0), *none = nullptr;
    const looks look = looks_of(c);
    cuda_launch(c, pixels_kernel<T, T>, cuda_blocks(c->rows * look.n.pixels), CUDA_THREADS, 0,
                cuda_out<T>(c), x, none, look);
}

template <class T> void backward(const keel_call *c)
{
    if (!c->in_grad[0]) return;
    const looks look = looks_of(c);
    double *behind = look.r.room + c->rows * look.n.pixels;
    const scatter_shape s = shape_of(c->node);
    uint64_t *keys = reinterpret_cast<uint64_t *>(behind);
    float *g = reinterpret_cast<float *>(behind) + scatter_scratch(s, c->rows) / sizeof(float);
    cuda_launch(c, pixels_kernel<float, T>, cuda_blocks(c->rows * look.n.pixels), CUDA_THREADS, 0,
                g, cuda_in<T>(c, 0), cuda_out_grad<T>(c), look);
    scatter(c, keys, cuda_in_grad<T>(c, 0), g, s, c->in_adds[0], look);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t *dim = p->node->in[0].shape.dim;
    const int64_t doubles = 2 * dim[0] * dim[1] + longest_of(p->node);
    const int64_t own = doubles * (int64_t)sizeof(double) + (int64_t)sizeof(bend);
    const scatter_shape s = shape_of(p->node);
    int64_t back = 0;
    if (!scatter_fits(s)) return KEEL_EUNSUP;
    if (p->pass == KEEL_BACKWARD)
        back = scatter_scratch(s, p->rows) +
               p->rows * keel_row_count(&p->node->in[0]) * (int64_t)sizeof(float);
    return cuda_prepare(p, p->rows * own + back);
}
} // namespace

CUDA_KERNEL(elastic) = { .op = &keel_op_elastic,
                         .name = "cuda",
                         .prepare = prepare,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
