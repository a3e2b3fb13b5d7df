/* For each number k a vector of n elements along a new last axis: 1 at place k, 0 elsewhere. No
 * gradient flows. Keras: ops.one_hot. */
#ifndef REAL
#include "ops/one_hot.h"
#include "ops/axis.h"
#include <math.h>
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_one_hot_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    if (out.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "one_hot: more than %d dims of a row", KEEL_RANK_MAX);
    out.dim[out.rank++] = a->n;
    return keel_infer_out(n, &out);
}

static void args_for_case(void *args, const char *text)
{
    keel_case_ints(text, "n", &((keel_one_hot_args *)args)->n, 1);
}

#define REAL_FILE "ops/one_hot.c"
#include "ops/real.h"

const keel_op keel_op_one_hot = {
    .name = "one_hot",
    .args_size = sizeof(keel_one_hot_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = 0,
    .goes = keel_goes_like,
    .cases =
        (const keel_case[]){ { "5", NULL, "n 3" }, { "2,3", NULL, "n 1" }, { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t n = ((const keel_one_hot_args *)c->node->args)->n;
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < n; k++) *y++ = trunc((double)x[i]) == (double)k;
}

static void REAL_(backward)(const keel_call *c)
{
    REAL *dx = c->in_grad[0];
    if (dx && !c->in_adds[0])
        memset(dx, 0, (size_t)(c->rows * keel_row_count(&c->node->in[0])) * sizeof *dx);
}
#endif
