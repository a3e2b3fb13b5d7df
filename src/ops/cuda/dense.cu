/* See ops/dense.c and _dense.h. */
#include "ops/cuda/_dense.h"

namespace
{
dense_dims dims_of(const keel_node *n, int64_t rows)
{
    const int64_t *w = n->weight[0].shape.dim;
    return { rows * (keel_row_count(&n->in[0]) / w[0]), w[0], w[1], false };
}

keel_status prepare(keel_prepare *p)
{
    return dense_prepare(p, dims_of(p->node, p->rows));
}

template <class T> void forward(const keel_call *c)
{
    dense_forward<T>(c, dims_of(c->node, c->rows));
}

template <class T> void backward(const keel_call *c)
{
    dense_backward<T>(c, dims_of(c->node, c->rows));
}

template <class T> void weights(const keel_call *c)
{
    dense_weights<T>(c, dims_of(c->node, c->rows));
}
} // namespace

CUDA_KERNEL(dense) = { .op = &keel_op_dense,
                       .name = "cublaslt",
                       .vendor = true,
                       .prepare = prepare,
                       .run = { forward<float>, backward<float>, weights<float> },
                       .narrow = { forward<bf16>, backward<bf16>, weights<bf16> },
                       .half = { forward<f16>, backward<f16>, weights<f16> },
                       .release = dense_release };
