/* See _conv.h: what is before and after a library's call. */
#include "ops/cuda/_conv_few.h"
#include "ops/cuda/_conv_products.h"
#include "ops/cuda/_conv_winograd.h"
#include "ops/cuda/_dense.h"
extern "C" {
#include "base/memory.h"
}

namespace
{
struct plan {
    cuda_geometry g;
    void *dense;             /* or */
    bool few;                /* or */
    conv_winograd *winograd; /* or */
    conv_products *products; /* or */
    conv_plan *conv;
    int64_t filter_at, sums_at; /* bytes into scratch; the workspace is at 0 */
};

/* ---- filters ----------------------------------------------------------------------------------
 */

const int TILE = 32, LINES = CUDA_THREADS / TILE;

/* to[columns, rows] = from[rows, columns], or +=. A block turns one tile at a time, in shared
 * memory, so that reads and writes are both of neighbours. */
template <class T, class R>
__global__ void __launch_bounds__(CUDA_THREADS)
    turn_kernel(R *to, const T *from, int64_t rows, int64_t columns, bool adds)
{
    SHARED(float, room, TILE *(TILE + 1));
    const int lane = (int)threadIdx.x % TILE, line = (int)threadIdx.x / TILE;
    const int64_t across = (columns + TILE - 1) / TILE, tiles = across * ((rows + TILE - 1) / TILE);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t r0 = t / across * TILE, c0 = t % across * TILE;
        for (int l = line; l < TILE; l += LINES)
            if (r0 + l < rows && c0 + lane < columns)
                room[l * (TILE + 1) + lane] = to_f(from[(r0 + l) * columns + c0 + lane]);
        __syncthreads();
        for (int l = line; l < TILE; l += LINES) {
            if (c0 + l >= columns || r0 + lane >= rows) continue;
            R *at = to + (c0 + l) * rows + r0 + lane;
            const float x = room[lane * (TILE + 1) + l];
            *at = to_value<R>(adds ? to_f(*at) + x : x);
        }
        __syncthreads();
    }
}

template <class T, class R>
void turn(const keel_call *c, R *to, const T *from, int64_t rows, int64_t columns, bool adds)
{
    const int64_t tiles = ((columns + TILE - 1) / TILE) * ((rows + TILE - 1) / TILE);
    cuda_launch(c, turn_kernel<T, R>, gpu_blocks(tiles, CUDA_BLOCKS), CUDA_THREADS, 0, to, from,
                rows, columns, adds);
}

int64_t channels_of(const keel_node *n) /* of the output */
{
    const keel_shape *s = &n->out[0].shape;
    return s->dim[s->rank - 1];
}

/* ---- prepared ---------------------------------------------------------------------------------
 */

conv_graph graph_of(const keel_prepare *p, const cuda_geometry *g)
{
    static const conv_direction straight[] = { CONV_FORWARD, CONV_DATA, CONV_FILTER },
                                turned[] = { CONV_DATA, CONV_FORWARD, CONV_FILTER };
    const keel_node *n = p->node;
    conv_graph x = {};
    x.direction = (g->transposed ? turned : straight)[p->pass];
    x.g = g;
    x.rows = p->rows;
    x.type = n->held;
    x.aligned_x = cuda_alignment(n, g->transposed ? &n->out[0] : &n->in[0]);
    x.aligned_y = cuda_alignment(n, g->transposed ? &n->in[0] : &n->out[0]);
    x.adds = p->pass == KEEL_FORWARD    ? n->n_weight > 1 /* a bias is there */
             : p->pass == KEEL_BACKWARD ? p->in_adds
                                        : false;
    x.float32 = p->float32;
    return x;
}

/* Every window is a place: a dense layer. */
bool is_dense(const cuda_geometry *g)
{
    bool is = g->groups == 1 && !g->transposed;
    for (int d = 0; d < g->dims; d++)
        is = is && g->size[d] == 1 && g->stride[d] == 1 && !g->before[d] && !g->after[d];
    return is;
}

/* cuDNN 9.19 has wrong filter gradients of narrow volumes in groups, measured on an H200. */
bool is_wrong(const conv_graph *x)
{
    return x->direction == CONV_FILTER && x->g->dims == 3 && x->g->groups > 1 &&
           keel_dtype_is_narrow(x->type);
}

keel_status make(const keel_prepare *p, const conv_graph *x, plan *pl, int64_t *scratch)
{
    if (is_wrong(x)) return KEEL_EUNSUP; /* in float32, then */
    const bool bias = p->pass == KEEL_FORWARD && p->node->n_weight > 1;
    keel_status s = conv_few_prepare(x, scratch);
    pl->few = s >= 0;
    if (s == KEEL_EUNSUP) s = conv_winograd_create(p, x, &pl->winograd, scratch);
    if (s == KEEL_EUNSUP) s = conv_products_create(p, x, bias, &pl->products, scratch);
    return s == KEEL_EUNSUP ? conv_plan_create(p, x, &pl->conv, scratch) : s;
}

/* The dense layer's plan and scratch become those of the convolution. */
keel_status prepare_dense(keel_prepare *p, plan *pl)
{
    KEEL_TRY(dense_prepare<false>(p));
    pl->dense = p->plan;
    p->plan = pl;
    return KEEL_OK;
}

keel_status prepare_windows(keel_prepare *p, plan *pl)
{
    const keel_node *n = p->node;
    int64_t at = 0;
    const conv_graph x = graph_of(p, &pl->g);
    KEEL_TRY(make(p, &x, pl, &at));
    pl->filter_at = at;
    if (pl->conv)
        at += cuda_piece(keel_row_count(&n->weight[0]) * (int64_t)keel_dtype_size(x.type));
    pl->sums_at = at;
    if (p->pass == KEEL_WEIGHTS && n->n_weight > 1) {
        const int64_t k = channels_of(n);
        at += cuda_places_scratch(p->rows * (keel_row_count(&n->out[0]) / k), k);
    }
    p->plan = pl;
    p->scratch = at;
    return KEEL_OK;
}
} // namespace

keel_status cuda_conv_prepare(keel_prepare *p, const cuda_geometry *g)
{
    if (!cuda_asked(p)) return KEEL_EUNSUP;
    plan *pl = static_cast<plan *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    pl->g = *g;
    keel_status s = is_dense(g) ? prepare_dense(p, pl) : KEEL_EUNSUP;
    if (s == KEEL_EUNSUP) s = prepare_windows(p, pl);
    if (s < 0) keel_free(pl);
    return s;
}

void cuda_conv_release(void *at)
{
    plan *pl = static_cast<plan *>(at);
    if (!pl) return;
    dense_release(pl->dense);
    conv_winograd_destroy(pl->winograd);
    conv_products_destroy(pl->products);
    conv_plan_destroy(pl->conv);
    keel_free(pl);
}

/* ---- run --------------------------------------------------------------------------------------
 */

namespace
{
/* Calls f with a value of the type that the call's values have. */
template <class F> void with_held(const keel_call *c, F f)
{
    if (c->node->held == KEEL_FLOAT16)
        f(f16());
    else if (c->node->held == KEEL_BFLOAT16)
        f(bf16());
    else
        f(float());
}

/* Keras's [taps.., C/G, K] as [K, taps.., C/G], in scratch. */
void *turned_filter(const keel_call *c)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    void *to = static_cast<char *>(c->scratch) + pl->filter_at;
    const float *from = static_cast<const float *>(c->weight[0]);
    const int64_t rows = keel_row_count(&c->node->weight[0]) / pl->g.k;
    with_held(c, [&](auto held) {
        turn(c, static_cast<decltype(held) *>(to), from, rows, pl->g.k, false);
    });
    return to;
}

/* in and out: of the op. */
bool run(const keel_call *c, const void *in, const void *out, void *filter)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    const bool turned = pl->g.transposed;
    return conv_plan_run(c, pl->conv, turned ? out : in, filter, turned ? in : out, c->scratch);
}

void run_products(const keel_call *c, const void *in, const void *filter, const void *out,
                  const void *bias, bool adds)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    const float *x = static_cast<const float *>(pl->g.transposed ? out : in);
    const float *y = static_cast<const float *>(pl->g.transposed ? in : out);
    const float *w = static_cast<const float *>(filter), *b = static_cast<const float *>(bias);
    if (pl->winograd)
        conv_winograd_run(c, pl->winograd, x, w, y, b, adds);
    else
        conv_products_run(c, pl->products, x, w, y, b, adds);
}

void filter_gradient(const keel_call *c)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    const int64_t rows = keel_row_count(&c->node->weight[0]) / pl->g.k;
    float *dw = static_cast<float *>(c->weight_grad[0]);
    char *filter = static_cast<char *>(c->scratch) + pl->filter_at;
    if (pl->few) return conv_few_weights(c, &pl->g, dw, c->weight_adds);
    if (!pl->conv) return run_products(c, c->in[0], dw, c->out_grad[0], nullptr, c->weight_adds);
    if (!run(c, c->in[0], c->out_grad[0], filter)) return;
    with_held(c, [&](auto held) {
        turn(c, dw, reinterpret_cast<decltype(held) *>(filter), pl->g.k, rows, c->weight_adds);
    });
}
} // namespace

/* The same call of a dense layer. */
static keel_call as_dense(const keel_call *c)
{
    keel_call d = *c;
    d.plan = static_cast<const plan *>(c->plan)->dense;
    return d;
}

void cuda_conv_forward(const keel_call *c)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    const keel_call d = as_dense(c);
    if (pl->dense)
        return with_held(c, [&](auto held) { dense_forward<decltype(held), false>(&d); });
    if (pl->few) return conv_few_forward(c, &pl->g);
    const bool bias = c->node->n_weight > 1;
    const bool fills = bias && (pl->conv || (pl->products && conv_products_fills(pl->products)));
    if (fills) with_held(c, [&](auto held) { cuda_fill<decltype(held)>(c); });
    if (pl->conv) {
        run(c, c->in[0], c->out[0], turned_filter(c));
        return;
    }
    run_products(c, c->in[0], c->weight[0], c->out[0], bias && !fills ? c->weight[1] : nullptr,
                 fills);
}

void cuda_conv_backward(const keel_call *c)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    const keel_call d = as_dense(c);
    if (pl->dense)
        return with_held(c, [&](auto held) { dense_backward<decltype(held), false>(&d); });
    if (!c->in_grad[0]) return;
    if (pl->conv)
        run(c, c->in_grad[0], c->out_grad[0], turned_filter(c));
    else
        run_products(c, c->in_grad[0], c->weight[0], c->out_grad[0], nullptr, c->in_adds[0]);
}

void cuda_conv_weights(const keel_call *c)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    const keel_call d = as_dense(c);
    if (pl->dense)
        return with_held(c, [&](auto held) { dense_weights<decltype(held), false>(&d); });
    float *db = c->node->n_weight > 1 ? static_cast<float *>(c->weight_grad[1]) : nullptr;
    if (c->weight_grad[0]) filter_gradient(c);
    if (!db) return;
    const int64_t k = channels_of(c->node), places = cuda_count(c) / k;
    with_held(c, [&](auto held) {
        places_sum(c, db, cuda_out_grad<decltype(held)>(c), places, k, c->weight_adds,
                   static_cast<char *>(c->scratch) + pl->sums_at);
    });
}
