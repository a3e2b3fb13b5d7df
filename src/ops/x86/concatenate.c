/* Inputs joined along one axis: contiguous pieces are copied, or their gradients added. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/axis.h"

#define VALUE_FILE "ops/x86/concatenate.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(concatenate, vector_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const keel_axis_split whole = keel_axis_of(c, &c->node->out[0]);
    const int64_t stride = whole.n * whole.inner;
    VALUE *y = c->out[0];
    for (int k = 0; k < c->node->n_in; k++) {
        const keel_axis_split part = keel_axis_of(c, &c->node->in[k]);
        const int64_t piece = part.n * part.inner;
        const VALUE *x = c->in[k];
        for (int64_t o = 0; o < c->rows * whole.outer; o++)
            VECTOR_MOVE(y + o * stride, x + o * piece, piece, false);
        y += piece;
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_axis_split whole = keel_axis_of(c, &c->node->out[0]);
    const int64_t stride = whole.n * whole.inner;
    const VALUE *dy = c->out_grad[0];
    for (int k = 0; k < c->node->n_in; k++) {
        const keel_axis_split part = keel_axis_of(c, &c->node->in[k]);
        const int64_t piece = part.n * part.inner;
        VALUE *dx = c->in_grad[k];
        for (int64_t o = 0; dx && o < c->rows * whole.outer; o++)
            VECTOR_MOVE(dx + o * piece, dy + o * stride, piece, c->in_adds[k]);
        dy += piece;
    }
}
#endif
