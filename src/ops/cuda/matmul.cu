/* See ops/matmul.c: by cuBLASLt, all matrices of a call in one batch.
 *
 *     y[m, n] = a[m, k] b[k, n];   da = dy b^T;   db = a^T dy                                    */
#include "ops/cuda/_product.h"
extern "C" {
#include "base/memory.h"
}

namespace
{
struct dims {
    int64_t batch, m, k, n;
};

struct plan {
    cuda_product_plan *product[2]; /* backward: for each of the two gradients */
};

dims dims_of(const keel_prepare *p)
{
    const keel_shape *a = &p->node->in[0].shape, *b = &p->node->in[1].shape;
    const int64_t m = a->dim[a->rank - 2], k = a->dim[a->rank - 1];
    return { p->rows * (keel_row_count(&p->node->in[0]) / (m * k)), m, k, b->dim[b->rank - 1] };
}

void release(void *at)
{
    plan *pl = static_cast<plan *>(at);
    if (!pl) return;
    for (cuda_product_plan *product : pl->product) cuda_product_release(product);
    keel_free(pl);
}

keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    if (!cuda_asked(p)) return KEEL_EUNSUP;
    const dims d = dims_of(p);
    const int64_t na = d.m * d.k, nb = d.k * d.n, ny = d.m * d.n;
    const int a = cuda_alignment(n, &n->in[0]);
    const int b = cuda_alignment(n, &n->in[1]);
    const int y = cuda_alignment(n, &n->out[0]);
    const cuda_product forward = {
        d.m,     d.n,     d.k,  d.batch, { false, na, a }, { false, nb, b }, { false, ny, y },
        n->held, n->held, false
    };
    const cuda_product back[] = { { d.m,
                                    d.k,
                                    d.n,
                                    d.batch,
                                    { false, ny, y },
                                    { true, nb, b },
                                    { false, na, a },
                                    n->held,
                                    n->held,
                                    false },
                                  { d.k,
                                    d.n,
                                    d.m,
                                    d.batch,
                                    { true, na, a },
                                    { false, ny, y },
                                    { false, nb, b },
                                    n->held,
                                    n->held,
                                    false } };
    plan *pl = static_cast<plan *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    keel_status s = KEEL_OK;
    p->scratch = 0;
    for (int i = 0; s >= 0 && i < (p->pass == KEEL_FORWARD ? 1 : 2); i++) {
        int64_t scratch = 0;
        s = cuda_product_prepare(p, p->pass == KEEL_FORWARD ? &forward : &back[i], &pl->product[i],
                                 &scratch);
        if (scratch > p->scratch) p->scratch = scratch;
    }
    if (s < 0)
        release(pl);
    else
        p->plan = pl;
    return s;
}

void forward(const keel_call *c)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    cuda_product_run(c, pl->product[0], c->in[0], c->in[1], nullptr, c->out[0], false, c->scratch);
}

void backward(const keel_call *c)
{
    const plan *pl = static_cast<const plan *>(c->plan);
    const void *dy = c->out_grad[0];
    if (c->in_grad[0] && !cuda_product_run(c, pl->product[0], dy, c->in[1], nullptr, c->in_grad[0],
                                           c->in_adds[0], c->scratch))
        return;
    if (c->in_grad[1])
        cuda_product_run(c, pl->product[1], c->in[0], dy, nullptr, c->in_grad[1], c->in_adds[1],
                         c->scratch);
}
} // namespace

CUDA_KERNEL(matmul) = { .op = &keel_op_matmul,
                        .name = "cublaslt",
                        .vendor = true,
                        .prepare = prepare,
                        .run = { forward, backward },
                        .narrow = { forward, backward },
                        .half = { forward, backward },
                        .release = release };
