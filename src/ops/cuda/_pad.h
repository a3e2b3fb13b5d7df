/* A border around the places of a row: see ops/pad.c. before: of each dim of a row. */
#ifndef KEEL_OPS_CUDA_PAD_H
#define KEEL_OPS_CUDA_PAD_H
#include "ops/cuda/_move.h"

template <class T> static void pad_forward(const keel_call *c, const int64_t *before, float with)
{
    const keel_shape &in = c->node->in[0].shape, &out = c->node->out[0].shape;
    int64_t step = keel_row_count(&c->node->in[0]);
    pick_box b = pick_rows(c->rows, step);
    for (int d = 0; d < in.rank; d++) {
        step /= in.dim[d];
        pick_add(&b, { out.dim[d], before[d], 1, in.dim[d], step });
    }
    pick(c, cuda_out<T>(c), cuda_in<T>(c, 0), b, with, false);
}

template <class T> static void pad_backward(const keel_call *c, const int64_t *before)
{
    const keel_shape &in = c->node->in[0].shape, &out = c->node->out[0].shape;
    int64_t from = keel_row_count(&c->node->out[0]), to = keel_row_count(&c->node->in[0]);
    move_box b = move_rows(c->rows, from, to);
    if (!c->in_grad[0]) return;
    for (int d = 0; d < in.rank; d++) {
        from /= out.dim[d];
        to /= in.dim[d];
        b.from_begin += before[d] * from;
        move_add(&b, in.dim[d], from, to);
    }
    move(c, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), b, c->in_adds[0]);
}

#endif
