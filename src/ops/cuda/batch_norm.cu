/* See ops/batch_norm.c. Records are sums of doubles in one order of places. A thread has the same
 * eight channels of every place that it comes to, so it reads what belongs to them once; their bits
 * of a relu are one byte. */
#include "ops/cuda/_kernel.h"

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

__device__ __forceinline__ double mean_of(const facts_args &f, int64_t k)
{
    return f.forward ? f.forward[1 + k] : (double)f.mean[k];
}

__device__ channel channel_of(const facts_args &f, int64_t k)
{
    channel h = { 0, 0, 1, 0 };
    double variance;
    h.mean = mean_of(f, k);
    if (f.forward)
        variance = f.forward[1 + f.c + k] / (f.forward[0] * f.per_row);
    else
        variance = f.variance[k];
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
    load8(mean, f.mean + k, n, a.wide);
    load8(scale, f.scale + k, n, a.wide);
    load8(offset, f.offset + k, n, a.wide);
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
    load8(mean, f.mean + k, n, a.wide);
    load8(slope, f.scale + k, n, a.wide);
    load8(less, f.a + k, n, a.wide);
    load8(by, f.b + k, n, a.wide);
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
    /* Places at a time. A thread should have several, since it first reads what belongs to its
     * channels. */
    const int64_t most = CUDA_BLOCKS / 4 * CUDA_THREADS / a.groups;
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
 *
 * A block has some groups of four channels, of a piece of one row or of several small rows. As many
 * threads share the places that each has some dozens. Both, and how a row is cut into pieces,
 * depend on the numbers of channels and places alone. Sums of pieces are added in their order, by a
 * launch of its own.
 */

/* AT_ONCE: places whose loads are under way together; of two arrays fewer, so that a
 * multiprocessor has registers for several blocks. */
const int FOUR = 4, SUMS = 2, AT_ONCE = 4, BACK_AT_ONCE = 3;
const int64_t PIECE_PLACES = 784, PIECES_MOST = 16, THREAD_PLACES = 24;

struct row_layout {
    int64_t rows, c, per_row, pieces;
    int64_t chunks, blocks; /* chunks: of a piece, each for a block */
    int lanes, lines;       /* of a block, for a row: groups of channels; threads of each */
    bool wide;
};

/* Where a thread of a block is. */
struct row_part {
    int64_t row, piece;
    int64_t first, end; /* places */
    int64_t k, n;       /* its first channel; how many there are from there on, or fewer than 1 */
    int line;           /* of the threads that share the places */
};

__device__ __forceinline__ row_part part_of(const row_layout &l, int64_t block)
{
    const int t = (int)threadIdx.x, each = l.lanes * l.lines;
    row_part at = {};
    at.k = (take(&block, l.chunks) * l.lanes + t % l.lanes) * FOUR;
    at.piece = take(&block, l.pieces);
    at.row = block * (CUDA_THREADS / each) + t / each;
    at.n = at.row < l.rows ? l.c - at.k : 0;
    at.first = at.piece * PIECE_PLACES;
    at.end = at.piece + 1 < l.pieces ? at.first + PIECE_PLACES : l.per_row;
    at.line = t / l.lanes % l.lines;
    return at;
}

/* Adds up what all threads have that share the places, at `to`, with a step of c from one sum to
 * the next. All threads call it. */
__device__ __forceinline__ void over_lines(double *to, const double mine[SUMS][FOUR], double *room,
                                           const row_layout &l, const row_part &at)
{
    const int t = (int)threadIdx.x;
    for (int s = 0; s < SUMS; s++)
        for (int e = 0; e < FOUR; e++) room[(s * FOUR + e) * CUDA_THREADS + t] = mine[s][e];
    __syncthreads();
    for (int j = at.line; j < SUMS * FOUR; j += l.lines) {
        const double *from = room + j * CUDA_THREADS + t - at.line * l.lanes;
        double sum = 0;
        for (int i = 0; i < l.lines; i++) sum += from[i * l.lanes];
        if (j % FOUR < at.n) to[j / FOUR * l.c + j % FOUR] = sum;
    }
    __syncthreads(); /* room is used again */
}

/* The sums about the first place's value, of values and of squares: in doubles these lose nothing
 * that a float has. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    partial_kernel(double *to, const T *in, const row_layout l)
{
    SHARED(double, room, SUMS *FOUR *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const row_part at = part_of(l, b);
        const T *x = in + at.row * l.per_row * l.c + at.k;
        double sum[SUMS][FOUR] = {};
        float pivot[FOUR], v[AT_ONCE][FOUR];
        load_some(pivot, x, at.n, l.wide);
        for (int64_t p = at.first + at.line; at.n > 0 && p < at.end; p += AT_ONCE * l.lines) {
            for (int u = 0; u < AT_ONCE; u++)
                if (p + u * l.lines < at.end)
                    load_some(v[u], x + (p + u * l.lines) * l.c, at.n, l.wide);
            for (int u = 0; u < AT_ONCE; u++)
                for (int e = 0; e < FOUR && p + u * l.lines < at.end; e++) {
                    const double d = (double)v[u][e] - (double)pivot[e];
                    sum[0][e] += d;
                    sum[1][e] = fma(d, d, sum[1][e]);
                }
        }
        over_lines(to + (at.row * l.pieces + at.piece) * SUMS * l.c + at.k, sum, room, l, at);
    }
}

/* Sums of the gradient, and of its products with x - mean. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 2)
    partial_backward_kernel(double *to, const T *in, const T *out_grad, const uint8_t *bits,
                            const facts_args f, int64_t bytes, const row_layout l)
{
    SHARED(double, room, SUMS *FOUR *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const row_part at = part_of(l, b);
        const int64_t first = at.row * l.per_row;
        const T *x = in + first * l.c + at.k, *dy = out_grad + first * l.c + at.k;
        const uint8_t *bit = bits ? bits + first * bytes + at.k / 8 : nullptr;
        double sum[SUMS][FOUR] = {}, mean[FOUR];
        float v[BACK_AT_ONCE][FOUR], g[BACK_AT_ONCE][FOUR];
        unsigned kept[BACK_AT_ONCE];
        for (int e = 0; e < FOUR; e++) mean[e] = e < at.n ? mean_of(f, at.k + e) : 0;
        for (int64_t p = at.first + at.line; at.n > 0 && p < at.end; p += BACK_AT_ONCE * l.lines) {
            for (int u = 0; u < BACK_AT_ONCE; u++) {
                const int64_t q = p + u * l.lines;
                if (q >= at.end) continue;
                load_some(v[u], x + q * l.c, at.n, l.wide);
                load_some(g[u], dy + q * l.c, at.n, l.wide);
                kept[u] = bits ? bit[q * bytes] >> at.k % 8 : 15u;
            }
            for (int u = 0; u < BACK_AT_ONCE; u++)
                for (int e = 0; e < FOUR && p + u * l.lines < at.end; e++) {
                    if (!(kept[u] >> e & 1)) continue;
                    sum[0][e] += (double)g[u][e];
                    sum[1][e] = fma((double)g[u][e], (double)v[u][e] - mean[e], sum[1][e]);
                }
        }
        over_lines(to + (at.row * l.pieces + at.piece) * SUMS * l.c + at.k, sum, room, l, at);
    }
}

/* A row's sums of all pieces. */
struct row_sums {
    double of[SUMS];
};

__device__ __forceinline__ row_sums over_pieces(const double *sums, const row_layout &l,
                                                int64_t row, int64_t k)
{
    row_sums all = {};
    for (int64_t p = 0; p < l.pieces; p++)
        for (int s = 0; s < SUMS; s++)
            all.of[s] += sums[((row * l.pieces + p) * SUMS + s) * l.c + k];
    return all;
}

/* The mean, and the sum of squares about it. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    mean_kernel(double *records, const double *sums, const T *in, const row_layout l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = l.rows * l.c;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, l.c);
        const row_sums all = over_pieces(sums, l, row, k);
        const double mean = all.of[0] / (double)l.per_row;
        double *to = records + row * SUMS * l.c + k;
        to[0] = (double)to_f(in[row * l.per_row * l.c + k]) + mean;
        to[l.c] = fmax(all.of[1] - all.of[0] * mean, 0.0) + 0 * mean; /* NaN stays */
    }
}

__global__ void __launch_bounds__(CUDA_THREADS)
    normalize_kernel(double *records, const double *sums, const facts_args f, const row_layout l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = l.rows * l.c;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, l.c);
        const row_sums all = over_pieces(sums, l, row, k);
        double *to = records + row * SUMS * l.c + k;
        to[0] = all.of[0];
        to[l.c] = all.of[1] * channel_of(f, k).invstd;
    }
}

row_layout layout_of(int64_t c, int64_t rows, int64_t per_row, bool wide)
{
    const int64_t groups = (c + FOUR - 1) / FOUR, pieces = per_row / PIECE_PLACES;
    const int most = per_row < PIECE_PLACES ? GPU_WARP : GPU_WARP / 2; /* else too few blocks */
    row_layout l = {};
    l.rows = rows;
    l.c = c;
    l.per_row = per_row;
    l.pieces = pieces < 1 ? 1 : pieces < PIECES_MOST ? pieces : PIECES_MOST;
    l.lanes = 4;
    while (l.lanes < most && l.lanes < groups) l.lanes *= 2;
    l.lines = 1;
    while (l.lines * l.lanes < CUDA_THREADS && 2 * l.lines * THREAD_PLACES <= per_row) l.lines *= 2;
    const int64_t together = CUDA_THREADS / (l.lanes * l.lines); /* rows of a block */
    l.chunks = (groups + l.lanes - 1) / l.lanes;
    l.blocks = (rows + together - 1) / together * l.pieces * l.chunks;
    l.wide = wide && c % FOUR == 0;
    return l;
}

unsigned grid_of(const row_layout &l)
{
    const int64_t most = CUDA_BLOCKS * 8;
    return (unsigned)(l.blocks < most ? l.blocks : most);
}

/* Bytes of scratch for the sums of pieces. */
int64_t sums_bytes(int64_t c, int64_t rows, int64_t per_row)
{
    const row_layout l = layout_of(c, rows, per_row, false);
    return rows * l.pieces * SUMS * c * (int64_t)sizeof(double);
}

template <class T> void partial(const keel_call *c)
{
    const T *x = cuda_in<T>(c, 0);
    const int64_t n = channels_of(c->node);
    const row_layout l = layout_of(n, c->rows, keel_row_count(&c->node->in[0]) / n, wide4(x));
    double *sums = static_cast<double *>(c->scratch);
    cuda_launch(c, partial_kernel<T>, grid_of(l), CUDA_THREADS, 0, sums, x, l);
    cuda_launch(c, mean_kernel<T>, cuda_blocks(c->rows * n), CUDA_THREADS, 0, c->partial, sums, x,
                l);
}

/* Records of `rows` rows of `per_row` places, which are those of the call. */
template <class T>
void records_backward(const keel_call *c, double *records, double *sums, int64_t rows,
                      int64_t per_row)
{
    const T *x = cuda_in<T>(c, 0), *dy = cuda_out_grad<T>(c);
    const int64_t n = channels_of(c->node);
    const row_layout l = layout_of(n, rows, per_row, wide4(x) && wide4(dy));
    const bool relu = cuda_args<keel_batch_norm_args>(c)->relu;
    const uint8_t *bits =
        relu && c->node->n_saved ? static_cast<const uint8_t *>(c->saved[0]) : nullptr;
    const facts_args f = args_of(c);
    cuda_launch(c, partial_backward_kernel<T>, grid_of(l), CUDA_THREADS, 0, sums, x, dy, bits, f,
                keel_batch_norm_bits(n), l);
    cuda_launch(c, normalize_kernel, cuda_blocks(rows * n), CUDA_THREADS, 0, records, sums, f, l);
}

template <class T> void partial_backward(const keel_call *c)
{
    const int64_t n = channels_of(c->node);
    records_backward<T>(c, c->partial, static_cast<double *>(c->scratch), c->rows,
                        keel_row_count(&c->node->in[0]) / n);
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
        records_backward<T>(c, own, own + SUMS * f.c, 1, c->rows * (int64_t)f.per_row);
        sums = own;
    }
    cuda_launch(c, weights_kernel, cuda_blocks(f.c), CUDA_THREADS, 0, dgamma, dbeta, sums, f,
                c->weight_adds);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t c = channels_of(p->node), per_row = keel_row_count(&p->node->in[0]) / c;
    if (p->pass == KEEL_PARTIAL || p->pass == KEEL_PARTIAL_BACKWARD)
        return cuda_prepare(p, sums_bytes(c, p->rows, per_row));
    if (p->pass == KEEL_WEIGHTS) /* a record of all rows, and what it is made of */
        return cuda_prepare(p, c * 16 + sums_bytes(c, 1, p->rows * per_row));
    return cuda_prepare(p, c * 20); /* facts */
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
