/* See ops/concatenate.c: a box for each input. */
#include "ops/cuda/_move.h"

namespace
{
int64_t product(const keel_shape &s, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= s.dim[d];
    return n;
}

/* The part of the output that is input k. */
struct piece {
    int64_t lines, length, step, begin;
};

piece piece_of(const keel_call *c, int k)
{
    const keel_node *n = c->node;
    const keel_shape &out = n->out[0].shape;
    const int64_t given = cuda_args<keel_axis_args>(c)->axis;
    const int axis = (int)(given < 0 ? given + out.rank : given);
    piece p = { c->rows * product(out, 0, axis), product(n->in[k].shape, axis, out.rank),
                product(out, axis, out.rank), 0 };
    for (int i = 0; i < k; i++) p.begin += product(n->in[i].shape, axis, out.rank);
    return p;
}

template <class T> void forward(const keel_call *c)
{
    for (int k = 0; k < c->node->n_in; k++) {
        const piece p = piece_of(c, k);
        move_box b = move_rows(p.lines, p.length, p.step);
        b.to_begin = p.begin;
        move_add(&b, p.length, 1, 1);
        move(c, cuda_out<T>(c), cuda_in<T>(c, k), b, false);
    }
}

template <class T> void backward(const keel_call *c)
{
    for (int k = 0; k < c->node->n_in; k++) {
        const piece p = piece_of(c, k);
        move_box b = move_rows(p.lines, p.step, p.length);
        b.from_begin = p.begin;
        move_add(&b, p.length, 1, 1);
        if (c->in_grad[k]) move(c, cuda_in_grad<T>(c, k), cuda_out_grad<T>(c), b, c->in_adds[k]);
    }
}
} // namespace

MOVE_KERNEL(concatenate);
