/* Rows of a table by index: copied, and gradients added to the rows that were asked for, in the
 * order of the reference. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/gather.h"

#define VALUE_FILE "ops/x86/gather.c"
#include "ops/x86/_values.h"

/* Of a table that is not made tile by tile, as of float16, which is widened. */
static void weights(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const int64_t rows = c->node->weight[0].shape.dim[0], d = c->node->weight[0].shape.dim[1];
    const float *dy = c->out_grad[0];
    float *dw = c->weight_grad[0];
    if (!dw) return;
    if (!c->weight_adds) memset(dw, 0, (size_t)(rows * d) * sizeof *dw);
    for (int64_t i = 0; i < count; i++, dy += d) {
        int64_t row;
        if (keel_gather_row(c, i, rows, &row)) add_f32(dw + row * d, dy, d);
    }
}

KEEL_USES_OP(gather);

const keel_kernel VECTOR_KERNEL(gather) = {
    .op = &keel_op_gather,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(VECTOR),
    .prepare = vector_prepare,
    .run = { [KEEL_FORWARD] = forward_f32,
             [KEEL_BACKWARD] = backward_f32,
             [KEEL_WEIGHTS] = weights },
    .weights_tile = weights_tile_f32,
    .narrow = { [KEEL_FORWARD] = forward_bf16, [KEEL_BACKWARD] = backward_bf16 },
    .narrow_tile = weights_tile_bf16,
};
#else
static void VALUE_(forward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const int64_t rows = c->node->weight[0].shape.dim[0], d = c->node->weight[0].shape.dim[1];
    const float *table = c->weight[0];
    VALUE *y = c->out[0];
    for (int64_t i = 0; i < count; i++, y += d) {
        int64_t row;
        if (keel_gather_row(c, i, rows, &row))
            VECTOR_MOVE(y, table + row * d, d, false);
        else
            memset(y, 0, (size_t)d * sizeof *y);
    }
}

/* No gradient flows through an integer. */
static void VALUE_(backward)(const keel_call *c)
{
    VALUE *dx = c->in_grad[0];
    if (dx && !c->in_adds[0])
        memset(dx, 0, (size_t)(c->rows * keel_row_count(&c->node->in[0])) * sizeof *dx);
}

static void VALUE_(add)(void *to, const void *from, int64_t d)
{
    float *grad = to;
    const VALUE *dy = from;
    VECTOR_MOVE(grad, dy, d, true);
}

static void VALUE_(weights_tile)(const keel_tile_call *c)
{
    keel_gather_tile(c, sizeof(float), VALUE_(add));
}
#endif
