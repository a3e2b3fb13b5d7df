/* A slice of each dim of a row, by a step that may be negative. Keras: x[:, 1:3, ::2].
 */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include "ops/pad.h"
#include <string.h>

keel_slice_args keel_slice_all(const keel_shape *s)
{
    keel_slice_args all = { 0 };
    for (int d = 0; d < s->rank; d++) {
        all.step[d] = 1;
        all.count[d] = s->dim[d];
    }
    return all;
}

static keel_status infer(keel_node *n)
{
    const keel_slice_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    for (int d = 0; d < out.rank; d++) {
        const int64_t dim = out.dim[d], far = (a->count[d] - 1) * a->step[d];
        if (a->count[d] < 1 || a->count[d] > dim || a->step[d] < -dim || a->step[d] > dim ||
            a->begin[d] < 0 || a->begin[d] >= dim || a->begin[d] + far < 0 ||
            a->begin[d] + far >= dim)
            return keel_fail(KEEL_ESHAPE, "slice: %lld places from %lld by %lld are not in %lld",
                             (long long)a->count[d], (long long)a->begin[d], (long long)a->step[d],
                             (long long)dim);
        out.dim[d] = a->count[d];
    }
    return keel_infer_out(n, &out);
}

/* The element of the input that becomes element i of the output. */
static int64_t comes_from(const keel_node *n, int64_t i)
{
    const keel_slice_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    int64_t index = 0, stride = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        index += (a->begin[d] + i % a->count[d] * a->step[d]) * stride;
        stride *= in->dim[d];
        i /= a->count[d];
    }
    return index;
}

/* How many neighbours of the output are neighbours in the input: the last dims that are taken
 * whole, times what is taken of the dim before them. */
static int64_t run_of(const keel_node *n)
{
    const keel_slice_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    int64_t run = 1;
    for (int d = in->rank - 1; d >= 0 && (a->step[d] == 1 || a->count[d] == 1); d--) {
        run *= a->count[d];
        if (a->count[d] != in->dim[d]) break;
    }
    return run;
}

#define REAL_FILE "ops/slice.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_slice_args *a = args;
    for (int d = 0; d < KEEL_RANK_MAX; d++) a->step[d] = a->count[d] = 1;
    keel_case_ints(text, "begin", a->begin, KEEL_RANK_MAX);
    keel_case_ints(text, "step", a->step, KEEL_RANK_MAX);
    keel_case_ints(text, "count", a->count, KEEL_RANK_MAX);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_slice_args *a = d->node->args;
    const keel_shape *in = &d->node->in[0].shape;
    keel_pad_args around = { .value = 0 };
    for (int i = 0; i < in->rank; i++) {
        if (a->step[i] != 1 && a->count[i] > 1)
            return keel_fail(KEEL_EUNSUP, "slice: its gradient cannot be differentiated with a "
                                          "step other than 1");
        around.before[i] = a->begin[i];
        around.behind[i] = in->dim[i] - a->begin[i] - a->count[i];
    }
    return keel_derive_one(d, &keel_op_pad, &around, d->grad, out);
}

const keel_op keel_op_slice = {
    .name = "slice",
    .args_size = sizeof(keel_slice_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .cases = (const keel_case[]){ { "6", NULL, "begin 1 step 2 count 2" },
                                  { "4,5", NULL, "begin 3,0 step -1,2 count 4,3" },
                                  { "2,3,4", NULL, "begin 1,0,2 count 1,3,1" },
                                  { "4,5,3", NULL, "begin 1,2,0 count 2,2,3" },
                                  { "4,5,3", NULL, "begin 0,4,0 count 3,1,3" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t n_in = keel_row_count(&c->node->in[0]);
    const int64_t n_out = keel_row_count(&c->node->out[0]);
    const int64_t run = run_of(c->node);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += n_in)
        for (int64_t i = 0; i < n_out; i += run, y += run)
            memcpy(y, x + comes_from(c->node, i), (size_t)run * sizeof *y);
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n_in = keel_row_count(&c->node->in[0]);
    const int64_t n_out = keel_row_count(&c->node->out[0]);
    const int64_t run = run_of(c->node);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, dx += n_in) {
        if (!c->in_adds[0]) memset(dx, 0, (size_t)n_in * sizeof *dx);
        for (int64_t i = 0; i < n_out; i += run, dy += run) {
            REAL *to = dx + comes_from(c->node, i);
            for (int64_t k = 0; k < run; k++) to[k] += dy[k];
        }
    }
}
#endif
