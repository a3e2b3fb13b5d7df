/* See ops/slice.c. What was not taken gets a gradient of 0. */
#include "ops/cuda/_move.h"

namespace
{
template <class T> void forward(const keel_call *c)
{
    const keel_slice_args *a = cuda_args<keel_slice_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    int64_t from = keel_row_count(&c->node->in[0]), to = keel_row_count(&c->node->out[0]);
    move_box b = move_rows(c->rows, from, to);
    for (int d = 0; d < in.rank; d++) {
        from /= in.dim[d];
        to /= a->count[d];
        b.from_begin += a->begin[d] * from;
        move_add(&b, a->count[d], a->step[d] * from, to);
    }
    move(c, cuda_out<T>(c), cuda_in<T>(c, 0), b, false);
}

template <class T> void backward(const keel_call *c)
{
    const keel_slice_args *a = cuda_args<keel_slice_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    int64_t from = keel_row_count(&c->node->out[0]);
    pick_box b = pick_rows(c->rows, from);
    if (!c->in_grad[0]) return;
    for (int d = 0; d < in.rank; d++) {
        from /= a->count[d];
        /* of one place no step says where it is; a step that takes no other serves */
        const int64_t step = a->count[d] > 1 ? a->step[d] : in.dim[d];
        pick_add(&b, { in.dim[d], a->begin[d], step, a->count[d], from });
    }
    pick(c, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), b, 0, c->in_adds[0]);
}
/* A place that is taken several times has several gradients. */
keel_status prepare(keel_prepare *p)
{
    const keel_slice_args *a = static_cast<const keel_slice_args *>(p->node->args);
    for (int d = 0; d < p->node->in[0].shape.rank; d++)
        if (a->count[d] > 1 && a->step[d] == 0) return KEEL_EUNSUP;
    return cuda_always(p);
}
} // namespace

CUDA_KERNEL(slice) = { .op = &keel_op_slice,
                       .name = "cuda",
                       .prepare = prepare,
                       .run = { forward<float>, backward<float> },
                       .narrow = { forward<bf16>, backward<bf16> },
                       .half = { forward<f16>, backward<f16> } };
