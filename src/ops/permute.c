/* The dims of a row in another order. Keras: ops.transpose, Permute. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_permute_args *a = n->args;
    bool seen[KEEL_RANK_MAX] = { false };
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    for (int d = 0; d < out.rank; d++) {
        if (a->from[d] < 0 || a->from[d] >= out.rank || seen[a->from[d]])
            return keel_fail(KEEL_EARG, "permute: the dims are no order of %d dims", out.rank);
        seen[a->from[d]] = true;
        out.dim[d] = n->in[0].shape.dim[a->from[d]];
    }
    return keel_infer_out(n, &out);
}

/* How far apart in the input lie neighbours along dim d of the output. */
static void steps_of(const keel_node *n, int64_t step[KEEL_RANK_MAX])
{
    const keel_permute_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    for (int d = 0; d < in->rank; d++) {
        step[d] = 1;
        for (int k = (int)a->from[d] + 1; k < in->rank; k++) step[d] *= in->dim[k];
    }
}

/* Where line `line` of a row of the output, along its last dim, begins in the input. */
static int64_t line_at(const keel_shape *out, const int64_t step[KEEL_RANK_MAX], int64_t line)
{
    int64_t at = 0;
    for (int d = out->rank - 2; d >= 0; d--) {
        at += line % out->dim[d] * step[d];
        line /= out->dim[d];
    }
    return at;
}

#define REAL_FILE "ops/permute.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_permute_args *a = args;
    keel_case_ints(text, "from", a->from, KEEL_RANK_MAX);
}

const keel_op keel_op_permute = {
    .name = "permute",
    .args_size = sizeof(keel_permute_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .cases = (const keel_case[]){ { "4,5", NULL, "from 1,0" },
                                  { "2,3,4", NULL, "from 2,0,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_shape *out = &c->node->out[0].shape;
    const int64_t count = keel_shape_count(out), n = out->rank ? out->dim[out->rank - 1] : 1;
    int64_t step[KEEL_RANK_MAX] = { 1 };
    steps_of(c->node, step);
    const int64_t by = out->rank ? step[out->rank - 1] : 1;
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t line = 0; line < count / n; line++) {
            const REAL *x = (const REAL *)c->in[0] + row * count + line_at(out, step, line);
            REAL *y = (REAL *)c->out[0] + row * count + line * n;
            if (by == 1)
                memcpy(y, x, (size_t)n * sizeof *y);
            else
                for (int64_t i = 0; i < n; i++) y[i] = x[i * by];
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_shape *out = &c->node->out[0].shape;
    const int64_t count = keel_shape_count(out), n = out->rank ? out->dim[out->rank - 1] : 1;
    int64_t step[KEEL_RANK_MAX] = { 1 };
    steps_of(c->node, step);
    const int64_t by = out->rank ? step[out->rank - 1] : 1;
    const bool adds = c->in_adds[0];
    for (int64_t row = 0; c->in_grad[0] && row < c->rows; row++)
        for (int64_t line = 0; line < count / n; line++) {
            const REAL *dy = (const REAL *)c->out_grad[0] + row * count + line * n;
            REAL *dx = (REAL *)c->in_grad[0] + row * count + line_at(out, step, line);
            for (int64_t i = 0; i < n; i++) dx[i * by] = adds ? dx[i * by] + dy[i] : dy[i];
        }
}
#endif
