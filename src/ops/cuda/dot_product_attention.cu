/* See ops/dot_product_attention.c. Who does what is in _attention_tensor.h for narrow values and
 * heads of at most 128 numbers, in _attention_blocks.h for float32 and heads of at most 64, and in
 * _attention.h for wider ones, whose tiles have no room there. */
#include "ops/cuda/_attention_tensor.h"
#include <initializer_list>

namespace
{
enum { QUERY, KEY, VALUE, MASKS };
const size_t SHARED_MOST = 48 << 10;

/* Where a block's own lines are: of queries or of keys. */
struct piece {
    int64_t row, o, head, first; /* the head is that of queries or of keys */

    __device__ __forceinline__ piece(int64_t block, int64_t pieces, int64_t heads, int64_t outer)
    {
        first = take(&block, pieces) * OWN;
        head = take(&block, heads);
        o = take(&block, outer);
        row = block;
    }
};

template <int R, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 2)
    forward_kernel(T *y, float *saved, const attention<T> a, int64_t blocks)
{
    SHARED_DYN(float, room);
    const attention_room m(room, a.d, a.e);
    const int lane = (int)threadIdx.x % GPU_WARP, warp = (int)threadIdx.x / GPU_WARP;
    const int64_t pieces = (a.t + OWN - 1) / OWN, share = a.heads / a.shared;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const piece p(b, pieces, a.heads, a.outer);
        const int64_t line = (p.o * a.heads + p.head) * a.t + p.first, own = line + warp;
        const bool exists = p.first + warp < a.t;
        int64_t first, end;
        float most = -INFINITY, all = 0, sum[R];
        for (int r = 0; r < R; r++) sum[r] = 0;
        a.range(p.first, p.first + OWN - 1, &first, &end);
        fill_tile(m.own_a, a.q + a.query_at(p.row, line) * a.d, a.d, a.heads * a.d, a.t - p.first,
                  OWN);
        for (int64_t from = first; from < end; from += TILE) {
            const int64_t key = a.key_at(p.row, p.o, from, p.head / share), j = from + lane;
            __syncthreads();
            fill_tile(m.a, a.k + key * a.d, a.d, a.shared * a.d, end - from, TILE);
            fill_tile(m.b, a.v + key * a.e, a.e, a.shared * a.e, end - from, TILE);
            __syncthreads();
            if (!exists) continue; /* nor does any lane of the warp */
            const float *k = m.a + lane * (a.d + 1), *q = m.own_a + warp * (a.d + 1);
            const float x = j < end ? a.score(tile_product(k, q, a.d), p.row, own, j) : -INFINITY;
            const float top = warp_fold(x, gpu_greater());
            const float now = top > most || top != top ? top : most;
            if (now == -INFINITY) continue; /* nothing is seen; the whole warp goes on */
            const float again = most == -INFINITY ? 0 : expf(most - now), w = expf(x - now);
            all = all * again + warp_fold(w, gpu_plus());
            for (int r = 0; r < R; r++) sum[r] *= again;
            add_lines(sum, w > 0 ? w * a.factor(p.row, own, j) : w, m.b, a.e, end - from);
            most = now;
        }
        const bool blind = most == -INFINITY;
        for (int64_t from = 0; a.uniform && from < a.s; from += TILE) { /* for who sees nothing */
            const int64_t key = a.key_at(p.row, p.o, from, p.head / share);
            __syncthreads();
            fill_tile(m.b, a.v + key * a.e, a.e, a.shared * a.e, a.s - from, TILE);
            __syncthreads();
            if (blind && exists) add_lines(sum, 1, m.b, a.e, a.s - from);
        }
        const float by = !blind ? 1 / all : a.uniform ? 1 / (float)a.s : 0;
        for (int r = 0; exists && r < R; r++)
            if (lane + r * GPU_WARP < a.e)
                y[a.query_at(p.row, own) * a.e + lane + r * GPU_WARP] = to_value<T>(sum[r] * by);
        if (saved && exists && lane == 0) {
            saved[2 * (p.row * a.lines + own)] = blind ? 0 : most;
            saved[2 * (p.row * a.lines + own) + 1] = blind ? 0 : 1 / all;
        }
        __syncthreads(); /* own_a is filled again */
    }
}

/* sum(y g) of each line; a warp has one. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    mean_kernel(float *mean, const T *y, const T *g, const attention<T> a)
{
    const int lane = (int)threadIdx.x % GPU_WARP;
    for (int64_t i = (int64_t)blockIdx.x * OWN + threadIdx.x / GPU_WARP; i < a.rows * a.lines;
         i += (int64_t)gridDim.x * OWN) {
        int64_t row = i;
        const int64_t line = take(&row, a.lines), at = a.query_at(row, line) * a.e;
        float sum = 0;
        for (int64_t k = lane; k < a.e; k += GPU_WARP) sum += to_f(y[at + k]) * to_f(g[at + k]);
        sum = warp_fold(sum, gpu_plus());
        if (lane == 0) mean[i] = sum;
    }
}

/* The weight of key j of a line, before dropout: 0 where it is not seen. */
template <class T>
__device__ __forceinline__ float weight_of(const attention<T> &a, const float *saved, float product,
                                           int64_t row, int64_t line, int64_t j)
{
    const float most = saved[2 * (row * a.lines + line)], r = saved[2 * (row * a.lines + line) + 1];
    return r == 0 ? 0 : expf(a.score(product, row, line, j) - most) * r;
}

template <class T> __device__ __forceinline__ void put(T *to, float x, bool adds)
{
    *to = to_value<T>(adds ? to_f(*to) + x : x);
}

template <int R, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 2)
    query_kernel(T *dq, const T *g, const float *saved, const float *mean, const attention<T> a,
                 int64_t blocks, bool adds)
{
    SHARED_DYN(float, room);
    const attention_room m(room, a.d, a.e);
    const int lane = (int)threadIdx.x % GPU_WARP, warp = (int)threadIdx.x / GPU_WARP;
    const int64_t pieces = (a.t + OWN - 1) / OWN, share = a.heads / a.shared;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const piece p(b, pieces, a.heads, a.outer);
        const int64_t line = (p.o * a.heads + p.head) * a.t + p.first, own = line + warp;
        const int64_t at = a.query_at(p.row, line), left = a.t - p.first;
        const bool exists = warp < left;
        int64_t first, end;
        float sum[R];
        for (int r = 0; r < R; r++) sum[r] = 0;
        a.range(p.first, p.first + OWN - 1, &first, &end);
        fill_tile(m.own_a, a.q + at * a.d, a.d, a.heads * a.d, left, OWN);
        fill_tile(m.own_b, g + at * a.e, a.e, a.heads * a.e, left, OWN);
        for (int64_t from = first; from < end; from += TILE) {
            const int64_t key = a.key_at(p.row, p.o, from, p.head / share), j = from + lane;
            __syncthreads();
            fill_tile(m.a, a.k + key * a.d, a.d, a.shared * a.d, end - from, TILE);
            fill_tile(m.b, a.v + key * a.e, a.e, a.shared * a.e, end - from, TILE);
            __syncthreads();
            float ds = 0;
            if (exists && j < end) {
                const float x =
                    tile_product(m.a + lane * (a.d + 1), m.own_a + warp * (a.d + 1), a.d);
                const float w = weight_of(a, saved, x, p.row, own, j);
                const float back =
                    tile_product(m.b + lane * (a.e + 1), m.own_b + warp * (a.e + 1), a.e);
                ds = w == 0 ? 0
                            : w * (a.factor(p.row, own, j) * back - mean[p.row * a.lines + own]) *
                                  a.scale;
            }
            if (exists) add_lines(sum, ds, m.a, a.d, end - from); /* so is its warp */
        }
        for (int r = 0; exists && r < R; r++)
            if (lane + r * GPU_WARP < a.d)
                put(dq + a.query_at(p.row, own) * a.d + lane + r * GPU_WARP, sum[r], adds);
        __syncthreads();
    }
}

/* A block has OWN keys, and goes over the queries of all heads that share them, a lane each. */
template <int R, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 2)
    key_kernel(T *dk, T *dv, const T *g, const float *saved, const float *mean,
               const attention<T> a, int64_t blocks, bool k_adds, bool v_adds)
{
    SHARED_DYN(float, room);
    const attention_room m(room, a.d, a.e);
    const int lane = (int)threadIdx.x % GPU_WARP, warp = (int)threadIdx.x / GPU_WARP;
    const int64_t pieces = (a.s + OWN - 1) / OWN, share = a.heads / a.shared;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const piece p(b, pieces, a.shared, a.outer);
        const int64_t key = a.key_at(p.row, p.o, p.first, p.head), left = a.s - p.first;
        const int64_t j = p.first + warp;
        const bool exists = warp < left;
        float of_k[R], of_v[R];
        for (int r = 0; r < R; r++) of_k[r] = of_v[r] = 0;
        fill_tile(m.own_a, a.k + key * a.d, a.d, a.shared * a.d, left, OWN);
        fill_tile(m.own_b, a.v + key * a.e, a.e, a.shared * a.e, left, OWN);
        for (int64_t turn = 0; turn < share * ((a.t + TILE - 1) / TILE); turn++) {
            int64_t from = turn;
            const int64_t head = p.head * share + take(&from, share);
            const int64_t t = from * TILE + lane;
            const int64_t line = (p.o * a.heads + head) * a.t + from * TILE, own = line + lane;
            const int64_t at = a.query_at(p.row, line), queries = a.t - from * TILE;
            __syncthreads();
            fill_tile(m.a, a.q + at * a.d, a.d, a.heads * a.d, queries, TILE);
            fill_tile(m.b, g + at * a.e, a.e, a.heads * a.e, queries, TILE);
            __syncthreads();
            float w = 0, ds = 0;
            if (exists && t < a.t) {
                const float x =
                    tile_product(m.a + lane * (a.d + 1), m.own_a + warp * (a.d + 1), a.d);
                w = weight_of(a, saved, x, p.row, own, j);
                if (w != 0) {
                    const float f = a.factor(p.row, own, j);
                    const float back =
                        tile_product(m.b + lane * (a.e + 1), m.own_b + warp * (a.e + 1), a.e);
                    ds = w * (f * back - mean[p.row * a.lines + own]) * a.scale;
                    w *= f;
                }
                if (a.uniform && saved[2 * (p.row * a.lines + own) + 1] == 0) w = 1 / (float)a.s;
            }
            if (dk && exists) add_lines(of_k, ds, m.a, a.d, queries);
            if (dv && exists) add_lines(of_v, w, m.b, a.e, queries);
        }
        const int64_t to = a.key_at(p.row, p.o, j, p.head);
        for (int r = 0; exists && r < R; r++) {
            const int64_t k = lane + r * GPU_WARP;
            if (dk && k < a.d) put(dk + to * a.d + k, of_k[r], k_adds);
            if (dv && k < a.e) put(dv + to * a.e + k, of_v[r], v_adds);
        }
        __syncthreads();
    }
}

keel_attention_dims dims_of(const keel_node *n)
{
    return keel_attention_dims_of(&n->in[QUERY].shape, &n->in[KEY].shape, &n->in[VALUE].shape);
}

/* Whether packs of N may be used for lines of n numbers that begin there. */
template <int N, class T> bool wide_lines(int64_t n, std::initializer_list<const T *> arrays)
{
    bool wide = n % N == 0;
    for (const T *at : arrays) wide = wide && fits_pack<N>(at);
    return wide;
}

template <class T> attention<T> attention_of(const keel_call *c)
{
    const keel_dot_product_attention_args *args = cuda_args<keel_dot_product_attention_args>(c);
    const keel_attention_dims d = dims_of(c->node);
    attention<T> a = {};
    a.q = cuda_in<T>(c, QUERY);
    a.k = cuda_in<T>(c, KEY);
    a.v = cuda_in<T>(c, VALUE);
    a.rows = c->rows;
    a.outer = d.outer;
    a.t = d.t;
    a.s = d.s;
    a.heads = d.heads;
    a.shared = d.shared;
    a.share = d.heads / d.shared;
    a.d = d.d;
    a.e = d.v;
    a.lines = d.lines;
    a.scale = (float)args->scale;
    a.less = (float)args->less;
    a.uniform = args->seen.uniform;
    a.drops = c->node->training && args->rate > 0;
    a.least = cuda_least(args->rate);
    a.kept = (float)(args->rate < 1 ? 1 / (1 - args->rate) : 0);
    a.chance = cuda_chance_of(c);
    a.masks = cuda_masks_of<T>(c, MASKS, d.scores, args->seen);
    return a;
}

/* The blocks of all heads, of which each has `own` of the head's lines. */
template <class T>
block_order order_of(const attention<T> &a, int64_t heads, int64_t lines, int64_t own)
{
    const int64_t cache = 16 << 20, all = a.rows * a.outer * heads;
    const int64_t most = cache / ((a.t > a.s ? a.t : a.s) * (a.d + a.e) * (int64_t)sizeof(T));
    return { all, (lines + own - 1) / own, most < 1 ? 1 : most < all ? most : all };
}

template <int W, class T> void forward_in_blocks(const keel_call *c, attention<T> a)
{
    T *y = cuda_out<T>(c);
    const block_order order = order_of(a, a.heads, a.t, LINES);
    const int64_t blocks = order.heads * order.pieces;
    a.wide_d = wide_lines<4, T>(a.d, { a.q, a.k });
    a.wide_e = wide_lines<4, T>(a.e, { a.v, y });
    cuda_launch(c, block_forward_kernel<W, T>, cuda_turns(blocks), BLOCK_THREADS,
                sizeof(float) * block_forward_room(W), y,
                c->node->n_saved ? static_cast<float *>(c->saved[0]) : nullptr, a, order, blocks);
}

template <int W, class T> void forward_by_tensor_cores(const keel_call *c, attention<T> a)
{
    T *y = cuda_out<T>(c);
    const block_order order = order_of(a, a.heads, a.t, BLOCK_OWN);
    a.wide_d = wide_lines<8, T>(a.d, { a.q, a.k });
    a.wide_e = wide_lines<8, T>(a.e, { a.v, y });
    if (a.masks.window > TENSOR_MOST) a.masks.window = TENSOR_MOST;
    cuda_launch(c, tensor_forward_kernel<W, T>, (unsigned)(order.heads * order.pieces),
                TENSOR_THREADS, tensor_room(W), y,
                c->node->n_saved ? static_cast<float *>(c->saved[0]) : nullptr, a, order);
}

template <int R, class T> void forward_as(const keel_call *c, const attention<T> &a)
{
    const int64_t blocks = a.rows * a.outer * a.heads * ((a.t + OWN - 1) / OWN);
    cuda_launch(c, forward_kernel<R, T>, cuda_turns(blocks), CUDA_THREADS,
                attention_shared(a.d, a.e), cuda_out<T>(c),
                c->node->n_saved ? static_cast<float *>(c->saved[0]) : nullptr, a, blocks);
}

/* What backward reads and writes, beside the inputs. */
template <class T> struct gradients {
    const T *g;         /* of the output */
    const float *saved; /* by forward */
    float *mean;        /* sum(y g) of each line */
    T *dq, *dk, *dv;    /* NULL: not wanted */
};

template <class T> void find_means(const keel_call *c, const attention<T> &a, const gradients<T> &x)
{
    cuda_launch(c, mean_kernel<T>, cuda_turns((a.rows * a.lines + OWN - 1) / OWN), CUDA_THREADS, 0,
                x.mean, cuda_out<T>(c), x.g, a);
}

template <int W, class T>
void backward_in_blocks(const keel_call *c, attention<T> a, const gradients<T> &x)
{
    const block_order of_q = order_of(a, a.heads, a.t, LINES),
                      of_k = order_of(a, a.shared, a.s, LINES);
    const int64_t queries = of_q.heads * of_q.pieces, keys = of_k.heads * of_k.pieces;
    a.wide_d = wide_lines<4, T>(a.d, { a.q, a.k, x.dq, x.dk });
    a.wide_e = wide_lines<4, T>(a.e, { a.v, x.g, x.dv });
    find_means(c, a, x);
    if (x.dq)
        cuda_launch(c, block_query_kernel<W, T>, cuda_turns(queries), BLOCK_THREADS,
                    sizeof(float) * block_query_room(W), x.dq, x.g, x.saved, x.mean, a, of_q,
                    queries, c->in_adds[QUERY]);
    if (x.dk || x.dv)
        cuda_launch(c, block_key_kernel<W, T>, cuda_turns(keys), BLOCK_THREADS,
                    sizeof(float) * block_key_room(W), x.dk, x.dv, x.g, x.saved, x.mean, a, of_k,
                    keys, c->in_adds[KEY], c->in_adds[VALUE]);
}

template <int W, class T>
void backward_by_tensor_cores(const keel_call *c, attention<T> a, const gradients<T> &x)
{
    const T *y = cuda_out<T>(c);
    const block_order of_q = order_of(a, a.heads, a.t, BLOCK_OWN),
                      of_k = order_of(a, a.shared, a.s, BLOCK_OWN);
    const unsigned queries = (unsigned)(of_q.heads * of_q.pieces);
    const auto of_keys = [&](auto kernel, T *dk, T *dv) {
        if (dk || dv)
            cuda_launch(c, kernel, (unsigned)(of_k.heads * of_k.pieces), TENSOR_THREADS,
                        tensor_key_room(W), dk, dv, x.g, x.saved, x.mean, a, of_k, c->in_adds[KEY],
                        c->in_adds[VALUE]);
    };
    a.wide_d = wide_lines<8, T>(a.d, { a.q, a.k, x.dq, x.dk });
    a.wide_e = wide_lines<8, T>(a.e, { a.v, y, x.g, x.dv });
    if (a.masks.window > TENSOR_MOST) a.masks.window = TENSOR_MOST;
    cuda_launch(c, tensor_mean_kernel<W, T>,
                cuda_turns(a.rows * a.lines / (CUDA_THREADS / W * 32) + 1), CUDA_THREADS, 0, x.mean,
                y, x.g, a);
    if (x.dq)
        cuda_launch(c, tensor_query_kernel<W, T>, queries, TENSOR_THREADS, tensor_room(W), x.dq,
                    x.g, x.saved, x.mean, a, of_q, c->in_adds[QUERY]);
    if constexpr (W <= 64) {
        of_keys(tensor_key_kernel<W, true, true, T>, x.dk, x.dv);
    } else {
        of_keys(tensor_key_kernel<W, true, false, T>, x.dk, static_cast<T *>(nullptr));
        of_keys(tensor_key_kernel<W, false, true, T>, static_cast<T *>(nullptr), x.dv);
    }
}

template <int R, class T>
void backward_as(const keel_call *c, const attention<T> &a, const gradients<T> &x)
{
    const int64_t queries = a.rows * a.outer * a.heads * ((a.t + OWN - 1) / OWN);
    const int64_t keys = a.rows * a.outer * a.shared * ((a.s + OWN - 1) / OWN);
    const size_t shared = attention_shared(a.d, a.e);
    find_means(c, a, x);
    if (x.dq)
        cuda_launch(c, query_kernel<R, T>, cuda_turns(queries), CUDA_THREADS, shared, x.dq, x.g,
                    x.saved, x.mean, a, queries, c->in_adds[QUERY]);
    if (x.dk || x.dv)
        cuda_launch(c, key_kernel<R, T>, cuda_turns(keys), CUDA_THREADS, shared, x.dk, x.dv, x.g,
                    x.saved, x.mean, a, keys, c->in_adds[KEY], c->in_adds[VALUE]);
}

template <class T> void forward(const keel_call *c)
{
    const attention<T> a = attention_of<T>(c);
    const int64_t most = a.d > a.e ? a.d : a.e;
    if constexpr (sizeof(T) == 2)
        most <= 32    ? forward_by_tensor_cores<32, T>(c, a)
        : most <= 64  ? forward_by_tensor_cores<64, T>(c, a)
        : most <= 128 ? forward_by_tensor_cores<128, T>(c, a)
                      : forward_as<8, T>(c, a);
    else
        most <= BLOCK_WIDTH_MOST / 2 ? forward_in_blocks<BLOCK_WIDTH_MOST / 2, T>(c, a)
        : most <= BLOCK_WIDTH_MOST   ? forward_in_blocks<BLOCK_WIDTH_MOST, T>(c, a)
        : most <= 4 * GPU_WARP       ? forward_as<4, T>(c, a)
                                     : forward_as<8, T>(c, a);
}

template <class T> void backward(const keel_call *c)
{
    const attention<T> a = attention_of<T>(c);
    const int64_t most = a.d > a.e ? a.d : a.e;
    const gradients<T> x = { cuda_out_grad<T>(c),
                             static_cast<const float *>(c->saved[0]),
                             static_cast<float *>(c->scratch),
                             cuda_in_grad<T>(c, QUERY),
                             cuda_in_grad<T>(c, KEY),
                             cuda_in_grad<T>(c, VALUE) };
    if constexpr (sizeof(T) == 2)
        most <= 32    ? backward_by_tensor_cores<32, T>(c, a, x)
        : most <= 64  ? backward_by_tensor_cores<64, T>(c, a, x)
        : most <= 128 ? backward_by_tensor_cores<128, T>(c, a, x)
                      : backward_as<8, T>(c, a, x);
    else
        most <= BLOCK_WIDTH_MOST / 2 ? backward_in_blocks<BLOCK_WIDTH_MOST / 2, T>(c, a, x)
        : most <= BLOCK_WIDTH_MOST   ? backward_in_blocks<BLOCK_WIDTH_MOST, T>(c, a, x)
        : most <= 4 * GPU_WARP       ? backward_as<4, T>(c, a, x)
                                     : backward_as<8, T>(c, a, x);
    for (int k = MASKS; k < c->node->n_in; k++) no_gradient<T>(c, k);
}

/* Whether ints count the lines of a call, of queries and of keys, and the numbers of a place. */
bool ints_count(const keel_prepare *p, const keel_attention_dims &d)
{
    const int64_t heads = p->rows * d.lines / d.t;
    return heads * d.t <= TENSOR_MOST && heads * d.s <= TENSOR_MOST &&
           d.heads * (d.d > d.v ? d.d : d.v) <= TENSOR_MOST;
}

/* A head so wide that its tiles have no room stays with the reference. */
keel_status prepare(keel_prepare *p)
{
    const keel_attention_dims d = dims_of(p->node);
    if (d.d > 8 * GPU_WARP || d.v > 8 * GPU_WARP || attention_shared(d.d, d.v) > SHARED_MOST ||
        !ints_count(p, d) || p->node->n_in - MASKS > MASKS_MAX)
        return KEEL_EUNSUP;
    return cuda_prepare(p,
                        p->pass == KEEL_BACKWARD ? p->rows * d.lines * (int64_t)sizeof(float) : 0);
}
} // namespace

CUDA_KERNEL(dot_product_attention) = { .op = &keel_op_dot_product_attention,
                                       .name = "cuda",
                                       .prepare = prepare,
                                       .run = { forward<float>, backward<float> },
                                       .narrow = { forward<bf16>, backward<bf16> },
                                       .half = { forward<f16>, backward<f16> } };
