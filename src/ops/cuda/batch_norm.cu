/* See ops/batch_norm.c. Records are sums of doubles in one order of places. A thread has the same
 * eight channels of every place that it comes to, so it reads what belongs to them once; their bits
 * of a relu are one byte. */
#include "ops/cuda/_columns.h"

namespace
{
const int EIGHT = 8; /* channels of a thread */

struct facts_args {
    const double *merged, *forward; /* NULL: moving statistics */
    const float *gamma, *beta, *mean, *variance, *renorm_mean, *renorm_stddev;
    double epsilon, per_row, r_min, r_max, d_max;
    bool renorm;
    int64_t c;
};

/* What a thread needs of each channel: y = (x - mean) scale + offset, and
 * dx = slope (dy - a - (x - mean) b). */
struct facts {
    float *mean, *scale, *offset; /* slope is scale */
    float *a, *b;
};

bool meets(const keel_node *n)
{
    return n->partial > 0;
}

int64_t channels_of(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

facts_args args_of(const keel_call *c)
{
    const keel_batch_norm_args *a = cuda_args<keel_batch_norm_args>(c);
    const keel_node *n = c->node;
    const int moving = a->scale + a->center;
    const float *const *w = reinterpret_cast<const float *const *>(c->weight);
    facts_args f = {};
    f.c = channels_of(n);
    f.per_row = (double)(keel_row_count(&n->in[0]) / f.c);
    f.epsilon = a->epsilon;
    f.gamma = a->scale ? w[0] : nullptr;
    f.beta = a->center ? w[a->scale] : nullptr;
    f.mean = w[moving];
    f.variance = w[moving + 1];
    if (!meets(n)) return f;
    f.merged = c->merged;
    f.forward = c->merged_forward ? c->merged_forward : c->merged;
    f.renorm = a->renorm.on;
    if (!f.renorm) return f;
    f.renorm_mean = w[moving + 3];
    f.renorm_stddev = w[moving + 4];
    f.r_min = a->renorm.r_min;
    f.r_max = a->renorm.r_max;
    f.d_max = a->renorm.d_max;
    return f;
}

struct channel {
    double mean, invstd, r, d;
};

__device__ channel channel_of(const facts_args &f, int64_t k)
{
    channel h = { 0, 0, 1, 0 };
    double variance;
    if (f.forward) {
        h.mean = f.forward[1 + k];
        variance = f.forward[1 + f.c + k] / (f.forward[0] * f.per_row);
    } else {
        h.mean = f.mean[k];
        variance = f.variance[k];
    }
    h.invstd = 1 / sqrt(variance + f.epsilon);
    if (!f.renorm) return h;
    const double deviation = fmax((double)f.renorm_stddev[k], sqrt(f.epsilon));
    h.r = fmin(fmax(1 / h.invstd / deviation, f.r_min), f.r_max);
    h.d = fmin(fmax((h.mean - f.renorm_mean[k]) / deviation, -f.d_max), f.d_max);
    return h;
}

__global__ void __launch_bounds__(CUDA_THREADS)
    facts_kernel(const facts_args f, const facts to, bool backward)
{
    const int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (k >= f.c) return;
    const channel h = channel_of(f, k);
    const double gamma = f.gamma ? f.gamma[k] : 1.0, scale = h.invstd * gamma * h.r;
    const float mean = (float)h.mean;
    to.mean[k] = mean;
    to.scale[k] = (float)scale;
    if (backward) {
        const double total = f.forward ? f.merged[0] * f.per_row : 1;
        const double a = f.forward ? f.merged[1 + k] / total : 0;
        const double b = f.forward ? f.merged[1 + f.c + k] / total * h.invstd : 0;
        to.a[k] = (float)(a + (mean - h.mean) * b); /* x - mean of a rounded mean */
        to.b[k] = (float)b;
    } else {
        to.offset[k] = (float)(gamma * h.d + (f.beta ? f.beta[k] : 0.0) + (mean - h.mean) * scale);
    }
}

facts facts_of(const keel_call *c, bool backward)
{
    const facts_args f = args_of(c);
    float *room = static_cast<float *>(c->scratch);
    const facts to = { room, room + f.c, room + 2 * f.c, room + 3 * f.c, room + 4 * f.c };
    if (c->rows > 0)
        cuda_launch(c, facts_kernel, cuda_blocks(f.c), CUDA_THREADS, 0, f, to, backward);
    return to;
}

/* ---- forward and backward ---------------------------------------------------------------------
 */

template <class T> struct apply_args {
    const T *x, *z, *dy; /* z: the second input, or NULL */
    T *y, *dx, *dz;
    uint8_t *bits;             /* NULL: none */
    int64_t places, c, groups; /* groups of eight channels, of a place */
    float cap;
    bool relu, wide, adds, z_adds;
};

template <class T>
__device__ __forceinline__ void load8(float v[EIGHT], const T *from, int64_t n, bool wide)
{
    if (wide && n >= EIGHT) {
        load4(v, from);
        load4(v + 4, from + 4);
        return;
    }
    for (int e = 0; e < EIGHT; e++) v[e] = e < n ? to_f(from[e]) : 0;
}

template <class T>
__device__ __forceinline__ void store8(T *to, const float v[EIGHT], int64_t n, bool wide)
{
    if (wide && n >= EIGHT) {
        store4(to, v);
        store4(to + 4, v + 4);
        return;
    }
    for (int e = 0; e < EIGHT; e++)
        if (e < n) to[e] = to_value<T>(v[e]);
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(const apply_args<T> a, const facts f, int64_t threads)
{
    const int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (t >= threads) return;
    const int64_t group = t % a.groups, k = group * EIGHT, n = a.c - k;
    float mean[EIGHT], scale[EIGHT], offset[EIGHT];
    load8(mean, f.mean + k, n, false);
    load8(scale, f.scale + k, n, false);
    load8(offset, f.offset + k, n, false);
    for (int64_t place = t / a.groups; place < a.places; place += threads / a.groups) {
        const int64_t at = place * a.c + k;
        float x[EIGHT], z[EIGHT];
        unsigned bits = 0;
        load8(x, a.x + at, n, a.wide);
        if (a.z) load8(z, a.z + at, n, a.wide);
        for (int e = 0; e < EIGHT; e++) {
            float y = (x[e] - mean[e]) * scale[e] + offset[e];
            if (a.z) y += z[e];
            if (a.relu) {
                if (e < n && y > 0 && y < a.cap) bits |= 1u << e;
                y = y <= 0 ? 0 : y > a.cap ? a.cap : y; /* NaN stays */
            }
            x[e] = y;
        }
        store8(a.y + at, x, n, a.wide);
        if (a.bits) a.bits[place * a.groups + group] = (uint8_t)bits;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(const apply_args<T> a, const facts f, int64_t threads)
{
    const int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (t >= threads) return;
    const int64_t group = t % a.groups, k = group * EIGHT, n = a.c - k;
    float mean[EIGHT], slope[EIGHT], less[EIGHT], by[EIGHT];
    load8(mean, f.mean + k, n, false);
    load8(slope, f.scale + k, n, false);
    load8(less, f.a + k, n, false);
    load8(by, f.b + k, n, false);
    for (int64_t place = t / a.groups; place < a.places; place += threads / a.groups) {
        const int64_t at = place * a.c + k;
        const unsigned bits = a.bits ? a.bits[place * a.groups + group] : 255;
        float given[EIGHT], x[EIGHT], old[EIGHT];
        load8(given, a.dy + at, n, a.wide);
        for (int e = 0; e < EIGHT; e++) given[e] = bits >> e & 1 ? given[e] : 0;
        if (a.dx) {
            load8(x, a.x + at, n, a.wide);
            if (a.adds) load8(old, a.dx + at, n, a.wide);
            for (int e = 0; e < EIGHT; e++) {
                const float g = slope[e] * (given[e] - less[e] - (x[e] - mean[e]) * by[e]);
                x[e] = a.adds ? old[e] + g : g;
            }
            store8(a.dx + at, x, n, a.wide);
        }
        if (!a.dz) continue;
        if (a.z_adds) {
            load8(old, a.dz + at, n, a.wide);
            for (int e = 0; e < EIGHT; e++) given[e] += old[e];
        }
        store8(a.dz + at, given, n, a.wide);
    }
}

template <class T> apply_args<T> apply_of(const keel_call *c, int64_t *threads)
{
    const keel_batch_norm_args *args = cuda_args<keel_batch_norm_args>(c);
    const keel_node *n = c->node;
    apply_args<T> a = {};
    a.c = channels_of(n);
    a.places = c->rows * (keel_row_count(&n->in[0]) / a.c);
    a.relu = args->relu;
    a.cap = args->max_value > 0 ? (float)args->max_value : INFINITY;
    a.bits = args->relu && n->n_saved ? static_cast<uint8_t *>(c->saved[0]) : nullptr;
    a.groups = a.bits ? keel_batch_norm_bits(a.c) : (a.c + EIGHT - 1) / EIGHT;
    a.x = cuda_in<T>(c, 0);
    a.wide = a.c % 4 == 0 && wide4(a.x);
    const int64_t most = CUDA_BLOCKS * CUDA_THREADS / a.groups; /* places at a time */
    *threads = (a.places < most ? a.places : most > 0 ? most : 1) * a.groups;
    return a;
}

template <class T> void forward(const keel_call *c)
{
    int64_t threads;
    apply_args<T> a = apply_of<T>(c, &threads);
    const facts f = facts_of(c, false);
    a.y = cuda_out<T>(c);
    a.z = c->node->n_in > 1 ? cuda_in<T>(c, 1) : nullptr;
    a.wide = a.wide && wide4(a.y) && (!a.z || wide4(a.z));
    cuda_launch(c, forward_kernel<T>, (unsigned)((threads + CUDA_THREADS - 1) / CUDA_THREADS),
                CUDA_THREADS, 0, a, f, threads);
}

template <class T> void backward(const keel_call *c)
{
    int64_t threads;
    apply_args<T> a = apply_of<T>(c, &threads);
    a.dx = cuda_in_grad<T>(c, 0);
    a.dz = c->node->n_in > 1 ? cuda_in_grad<T>(c, 1) : nullptr;
    if (!a.dx && !a.dz) return;
    const facts f = facts_of(c, true);
    a.dy = cuda_out_grad<T>(c);
    a.adds = c->in_adds[0];
    a.z_adds = a.dz && c->in_adds[1];
    a.wide = a.wide && wide4(a.dy) && (!a.dx || wide4(a.dx)) && (!a.dz || wide4(a.dz));
    cuda_launch(c, backward_kernel<T>, (unsigned)((threads + CUDA_THREADS - 1) / CUDA_THREADS),
                CUDA_THREADS, 0, a, f, threads);
}

/* ---- records ----------------------------------------------------------------------------------
 */

/* A block has a warp of channels of one row; its threads share the places. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    partial_kernel(double *records, const T *in, int64_t c, int64_t per_row, int64_t chunks,
                   int64_t blocks)
{
    SHARED(double, room, CUDA_THREADS);
    const int first = (int)threadIdx.x / GPU_WARP;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const int64_t row = b / chunks, k = b % chunks * GPU_WARP + threadIdx.x % GPU_WARP;
        const T *x = in + row * per_row * c + k;
        double *mean_of = records + row * 2 * c + k;
        double sum = 0, squares = 0;
        for (int64_t p = first; k < c && p < per_row; p += PLACES) sum += to_f(x[p * c]);
        const double mean = over_places(sum, room) / (double)per_row;
        for (int64_t p = first; k < c && p < per_row; p += PLACES) {
            const double d = to_f(x[p * c]) - mean;
            squares += d * d;
        }
        squares = over_places(squares, room);
        if (first != 0 || k >= c) continue;
        mean_of[0] = mean;
        mean_of[c] = squares;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    partial_backward_kernel(double *records, const T *in, const T *out_grad, const uint8_t *bits,
                            const facts_args f, int64_t per_row, int64_t bytes, int64_t chunks,
                            int64_t blocks)
{
    SHARED(double, room, CUDA_THREADS);
    const int first = (int)threadIdx.x / GPU_WARP;
    const int64_t c = f.c;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const int64_t row = b / chunks, k = b % chunks * GPU_WARP + threadIdx.x % GPU_WARP;
        const channel h = k < c ? channel_of(f, k) : channel{ 0, 0, 1, 0 };
        const T *x = in + row * per_row * c + k, *dy = out_grad + row * per_row * c + k;
        double sum = 0, product = 0;
        for (int64_t p = first; k < c && p < per_row; p += PLACES) {
            if (bits && !(bits[(row * per_row + p) * bytes + k / 8] >> k % 8 & 1)) continue;
            const double g = to_f(dy[p * c]);
            sum += g;
            product += g * (to_f(x[p * c]) - h.mean);
        }
        sum = over_places(sum, room);
        product = over_places(product, room);
        if (first != 0 || k >= c) continue;
        records[row * 2 * c + k] = sum;
        records[row * 2 * c + c + k] = product * h.invstd;
    }
}

template <class T> void partial(const keel_call *c)
{
    const int64_t n = channels_of(c->node), chunks = (n + GPU_WARP - 1) / GPU_WARP;
    const int64_t blocks = c->rows * chunks, most = CUDA_BLOCKS * 8;
    cuda_launch(c, partial_kernel<T>, (unsigned)(blocks < most ? blocks : most), CUDA_THREADS, 0,
                c->partial, cuda_in<T>(c, 0), n, keel_row_count(&c->node->in[0]) / n, chunks,
                blocks);
}

/* Records of `rows` rows of `per_row` places, which are those of the call. */
template <class T>
void records_backward(const keel_call *c, double *records, int64_t rows, int64_t per_row)
{
    const int64_t n = channels_of(c->node), chunks = (n + GPU_WARP - 1) / GPU_WARP;
    const int64_t blocks = rows * chunks, most = CUDA_BLOCKS * 8;
    const bool relu = cuda_args<keel_batch_norm_args>(c)->relu;
    const uint8_t *bits =
        relu && c->node->n_saved ? static_cast<const uint8_t *>(c->saved[0]) : nullptr;
    facts_args f = args_of(c);
    cuda_launch(c, partial_backward_kernel<T>, (unsigned)(blocks < most ? blocks : most),
                CUDA_THREADS, 0, records, cuda_in<T>(c, 0), cuda_out_grad<T>(c), bits, f, per_row,
                keel_batch_norm_bits(n), chunks, blocks);
}

template <class T> void partial_backward(const keel_call *c)
{
    const int64_t n = channels_of(c->node);
    records_backward<T>(c, c->partial, c->rows, keel_row_count(&c->node->in[0]) / n);
}

/* ---- weights ----------------------------------------------------------------------------------
 */

__global__ void __launch_bounds__(CUDA_THREADS)
    weights_kernel(float *dgamma, float *dbeta, const double *sums, const facts_args f, bool adds)
{
    const int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (k >= f.c) return;
    const double sum = sums[k];
    double product = sums[f.c + k];
    if (f.renorm) { /* xhat r + d is what gamma is multiplied by */
        const channel h = channel_of(f, k);
        product = h.r * product + h.d * sum;
    }
    if (dbeta) dbeta[k] = (float)(adds ? dbeta[k] + sum : sum);
    if (dgamma) dgamma[k] = (float)(adds ? dgamma[k] + product : product);
}

template <class T> void weights(const keel_call *c)
{
    const keel_batch_norm_args *a = cuda_args<keel_batch_norm_args>(c);
    const facts_args f = args_of(c);
    float *dgamma = a->scale ? static_cast<float *>(c->weight_grad[0]) : nullptr;
    float *dbeta = a->center ? static_cast<float *>(c->weight_grad[a->scale]) : nullptr;
    const double *sums = f.merged + 1;
    if (!dgamma && !dbeta) return;
    if (!f.forward) {
        double *own = static_cast<double *>(c->scratch);
        records_backward<T>(c, own, 1, c->rows * (int64_t)f.per_row);
        sums = own;
    }
    cuda_launch(c, weights_kernel, cuda_blocks(f.c), CUDA_THREADS, 0, dgamma, dbeta, sums, f,
                c->weight_adds);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t c = channels_of(p->node);
    return cuda_prepare(p, c * (p->pass == KEEL_WEIGHTS ? 16 : 20)); /* sums, facts */
}
} // namespace

CUDA_KERNEL(batch_norm) = { .op = &keel_op_batch_norm,
                            .name = "cuda",
                            .prepare = prepare,
                            .run = { forward<float>, backward<float>, weights<float>,
                                     partial<float>, partial_backward<float> },
                            .narrow = { forward<bf16>, backward<bf16>, weights<bf16>, partial<bf16>,
                                        partial_backward<bf16> },
                            .half = { forward<f16>, backward<f16>, weights<f16>, partial<f16>,
                                      partial_backward<f16> } };
