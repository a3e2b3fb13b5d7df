/* dense and dense_transposed by cuBLASLt, and convolutions whose windows are places: a product for
 * each pass, the bias in its epilogue or, where no algorithm has one, in the output before; and the
 * bias's gradient by our own sum over places.
 *
 *     y[places, k] = x[places, c] W[c, k] + b        W lies as [c, k], or turned as [k, c]
 *     dx = dy W^T;   dW = x^T dy, or turned dy^T x;   db = sum of dy
 *
 * Weights and their gradients are float32. Beside narrow values they are rounded into scratch
 * first; gradients are not. */
#ifndef KEEL_OPS_CUDA_DENSE_H
#define KEEL_OPS_CUDA_DENSE_H
#include "ops/cuda/_product.h"
extern "C" {
#include "base/memory.h"
}

struct dense_dims {
    int64_t places, c, k;
    bool turned;
};

static inline dense_dims dense_dims_of(const keel_node *n, int64_t rows, bool turned)
{
    const keel_shape *w = &n->weight[0].shape;
    const int64_t last = w->dim[w->rank - 1], others = keel_shape_count(w) / last;
    const int64_t c = turned ? last : others, k = turned ? others : last;
    return { rows * (keel_row_count(&n->in[0]) / c), c, k, turned };
}

struct dense_plan {
    cuda_product_plan *product;
    bool fills;                          /* the bias is in the output before */
    int64_t weight_at, bias_at, sums_at; /* bytes into scratch; the product's own is at 0 */
};

static inline void dense_release(void *plan)
{
    dense_plan *pl = static_cast<dense_plan *>(plan);
    if (!pl) return;
    cuda_product_release(pl->product);
    keel_free(pl);
}

static inline cuda_product dense_product(const keel_prepare *p, dense_dims d)
{
    const keel_dtype type = p->node->held;
    const int x = cuda_alignment(p->node, &p->node->in[0]);
    const int y = cuda_alignment(p->node, &p->node->out[0]), w = 16;
    switch (p->pass) {
    case KEEL_FORWARD:
        return { d.places,
                 d.k,
                 d.c,
                 1,
                 { false, 0, x },
                 { d.turned, 0, w },
                 { false, 0, y },
                 type,
                 type,
                 p->node->n_weight > 1 };
    case KEEL_BACKWARD:
        return { d.places,        d.c,  d.k,  1,    { false, 0, y }, { !d.turned, 0, w },
                 { false, 0, x }, type, type, false };
    default:
        if (d.turned)
            return {
                d.k,  d.c,          d.places, 1, { true, 0, y }, { false, 0, x }, { false, 0, w },
                type, KEEL_FLOAT32, false
            };
        return { d.c,  d.k,          d.places, 1, { true, 0, x }, { false, 0, y }, { false, 0, w },
                 type, KEEL_FLOAT32, false };
    }
}

template <bool TURNED> static keel_status dense_prepare(keel_prepare *p)
{
    const dense_dims d = dense_dims_of(p->node, p->rows, TURNED);
    const bool narrow = keel_dtype_is_narrow(p->node->held), biased = p->node->n_weight > 1;
    if (!cuda_asked(p)) return KEEL_EUNSUP;
    dense_plan *pl = static_cast<dense_plan *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    cuda_product x = dense_product(p, d);
    int64_t at = 0;
    keel_status s = cuda_product_prepare(p, &x, &pl->product, &at);
    if (s == KEEL_EUNSUP && x.bias) {
        x.bias = false;
        pl->fills = true;
        s = cuda_product_prepare(p, &x, &pl->product, &at);
    }
    if (s < 0) {
        keel_free(pl);
        return s;
    }
    pl->weight_at = at;
    if (narrow && p->pass != KEEL_WEIGHTS) at += cuda_piece(d.c * d.k * 2);
    pl->bias_at = at;
    if (narrow && p->pass == KEEL_FORWARD && biased) at += cuda_piece(d.k * 2);
    pl->sums_at = at;
    if (p->pass == KEEL_WEIGHTS && biased) at += cuda_places_scratch(d.places, d.k);
    p->plan = pl;
    p->scratch = at;
    return KEEL_OK;
}

static inline char *dense_scratch(const keel_call *c, int64_t at)
{
    return static_cast<char *>(c->scratch) + at;
}

template <class T, bool TURNED> static void dense_forward(const keel_call *c)
{
    const dense_dims d = dense_dims_of(c->node, c->rows, TURNED);
    const dense_plan *pl = static_cast<const dense_plan *>(c->plan);
    const void *w = cuda_rounded<T>(c, c->weight[0], d.c * d.k, dense_scratch(c, pl->weight_at));
    const void *b = nullptr;
    if (pl->fills)
        cuda_fill<T>(c);
    else if (c->node->n_weight > 1)
        b = cuda_rounded<T>(c, c->weight[1], d.k, dense_scratch(c, pl->bias_at));
    cuda_product_run(c, pl->product, c->in[0], w, b, c->out[0], pl->fills, c->scratch);
}

template <class T, bool TURNED> static void dense_backward(const keel_call *c)
{
    const dense_dims d = dense_dims_of(c->node, c->rows, TURNED);
    const dense_plan *pl = static_cast<const dense_plan *>(c->plan);
    if (!c->in_grad[0]) return;
    const void *w = cuda_rounded<T>(c, c->weight[0], d.c * d.k, dense_scratch(c, pl->weight_at));
    cuda_product_run(c, pl->product, c->out_grad[0], w, nullptr, c->in_grad[0], c->in_adds[0],
                     c->scratch);
}

template <class T, bool TURNED> static void dense_weights(const keel_call *c)
{
    const dense_dims d = dense_dims_of(c->node, c->rows, TURNED);
    const dense_plan *pl = static_cast<const dense_plan *>(c->plan);
    const void *x = c->in[0], *dy = c->out_grad[0];
    if (c->weight_grad[0] &&
        !cuda_product_run(c, pl->product, d.turned ? dy : x, d.turned ? x : dy, nullptr,
                          c->weight_grad[0], c->weight_adds, c->scratch))
        return;
    if (c->node->n_weight > 1 && c->weight_grad[1])
        places_sum(c, static_cast<float *>(c->weight_grad[1]), cuda_out_grad<T>(c), d.places, d.k,
                   c->weight_adds, dense_scratch(c, pl->sums_at));
}

#endif
