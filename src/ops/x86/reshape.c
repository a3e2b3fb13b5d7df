/* The same elements in another shape, where the program has not laid out over in. */
#ifndef VALUE
#include "ops/x86/_vector.h"

#define VALUE_FILE "ops/x86/reshape.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(reshape, vector_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    if (y != x) VECTOR_MOVE(y, x, c->rows * keel_row_count(&c->node->out[0]), false);
}

static void VALUE_(backward)(const keel_call *c)
{
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    if (dx && dx != dy)
        VECTOR_MOVE(dx, dy, c->rows * keel_row_count(&c->node->out[0]), c->in_adds[0]);
}
#endif
