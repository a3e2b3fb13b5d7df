/* A border of zeros around an image: every element is written once. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/args.h"

#define VALUE_FILE "ops/x86/zero_pad2d.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(zero_pad2d, vector_prepare);
#else
static VALUE *VALUE_(zeros)(VALUE *y, int64_t n)
{
    memset(y, 0, (size_t)n * sizeof *y);
    return y + n;
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_zero_pad2d_args *a = c->node->args;
    const int64_t *in = c->node->in[0].shape.dim, *out = c->node->out[0].shape.dim;
    const int64_t line = in[1] * in[2], out_line = out[1] * out[2];
    const int64_t left = a->pad[2] * out[2], right = a->pad[3] * out[2];
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++) {
        y = VALUE_(zeros)(y, a->pad[0] * out_line + left);
        for (int64_t h = 0; h < in[0]; h++, x += line) {
            memcpy(y, x, (size_t)line * sizeof *y);
            y = VALUE_(zeros)(y + line, h + 1 < in[0] ? right + left : right); /* as they touch */
        }
        y = VALUE_(zeros)(y, a->pad[1] * out_line);
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_zero_pad2d_args *a = c->node->args;
    const int64_t *in = c->node->in[0].shape.dim, *out = c->node->out[0].shape.dim;
    const int64_t line = in[1] * in[2], out_line = out[1] * out[2];
    VALUE *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++) {
        const VALUE *dy = (const VALUE *)c->out_grad[0] + row * out[0] * out_line;
        dy += a->pad[0] * out_line + a->pad[2] * out[2];
        for (int64_t h = 0; h < in[0]; h++, dx += line, dy += out_line)
            VECTOR_MOVE(dx, dy, line, c->in_adds[0]);
    }
}
#endif
