/* The same given numbers for every row, whatever the input, which only says how many rows there
 * are. No gradient flows. In Keras: an array among the arguments of an operation. */
#ifndef REAL
#include "ops/numbers.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_shape *shape = &((const keel_numbers_args *)n->args)->shape;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_shape_check(shape, sizeof(double)));
    if (keel_shape_count(shape) > KEEL_ARRAY_MAX)
        return keel_fail(KEEL_EUNSUP, "numbers: %lld of them; at most %d are supported",
                         (long long)keel_shape_count(shape), KEEL_ARRAY_MAX);
    return keel_infer_out(n, shape);
}

static size_t args_bytes(const void *args)
{
    return keel_numbers_bytes(&((const keel_numbers_args *)args)->shape);
}

static void args_for_case(void *args, const char *text)
{
    static const double six[] = { 0.5, -1, 2, 0, 3.25, -0.75 };
    keel_numbers_args *a = args;
    a->shape = keel_case_has(text, "flat") ? KEEL_SHAPE(6) : KEEL_SHAPE(2, 3);
    memcpy(a->at, six, sizeof six);
}

#define REAL_FILE "ops/numbers.c"
#include "ops/real.h"

const keel_op keel_op_numbers = {
    .name = "numbers",
    .args_size = sizeof(keel_numbers_args),
    .args_bytes = args_bytes,
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = 0,
    .cases =
        (const keel_case[]){ { "5", NULL, NULL }, { "2,3", NULL, "flat" }, { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const double *at = ((const keel_numbers_args *)c->node->args)->at;
    const int64_t count = keel_row_count(&c->node->out[0]);
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count && c->rows > 0; i++) y[i] = (REAL)at[i];
    for (int64_t row = 1; row < c->rows; row++)
        memcpy(y + row * count, y, (size_t)count * sizeof *y);
}

static void REAL_(backward)(const keel_call *c)
{
    REAL *dx = c->in_grad[0];
    if (dx && !c->in_adds[0])
        memset(dx, 0, (size_t)(c->rows * keel_row_count(&c->node->in[0])) * sizeof *dx);
}
#endif
