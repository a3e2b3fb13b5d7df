/* The mean, sum, largest or smallest over some dims of a row. If several elements are the largest,
 * they share the gradient, as in TensorFlow. Keras: ops.mean, ops.sum, ops.max, ops.min. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    const keel_reduce_args *a = n->args;
    keel_shape out = { 0 };
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    for (int d = 0; d < n->in[0].shape.rank; d++)
        if (!a->over[d] || a->keepdims)
            out.dim[out.rank++] = a->over[d] ? 1 : n->in[0].shape.dim[d];
    KEEL_TRY(keel_infer_out(n, &out));
    n->scratch = 8 * keel_row_count(&n->out[0]);
    return KEEL_OK;
}

static keel_going goes(const keel_node *n, int k)
{
    const keel_reduce_args *a = n->args;
    return n->in[k].shape.rank > 0 && !a->over[0] ? KEEL_GOES_ALONG : KEEL_GOES_NOT;
}

/* The element of the output to which element i of the input goes. */
static int64_t goes_to(const keel_node *n, int64_t i)
{
    const keel_reduce_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    int64_t index = 0, step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        if (!a->over[d]) {
            index += i % in->dim[d] * step;
            step *= in->dim[d];
        }
        i /= in->dim[d];
    }
    return index;
}

/* The last dim of the input: its length, and the distance of its elements in the output. */
typedef struct line {
    int64_t length, step;
} line;

static line line_of(const keel_node *n)
{
    const keel_reduce_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    if (in->rank == 0) return (line){ 1, 0 };
    return (line){ in->dim[in->rank - 1], a->over[in->rank - 1] ? 0 : 1 };
}

#define REAL_FILE "ops/reduce.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_reduce_args *a = args;
    int64_t to = KEEL_REDUCE_MEAN, over[KEEL_RANK_MAX] = { 0 };
    keel_case_ints(text, "to", &to, 1);
    const int n = keel_case_ints(text, "over", over, KEEL_RANK_MAX);
    for (int i = 0; i < n; i++) a->over[over[i]] = true;
    a->to = (keel_reduce_to)to;
    a->keepdims = keel_case_has(text, "keepdims");
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_reduce_args *a = d->node->args;
    const keel_shape *in = &d->node->in[0].shape;
    keel_shape kept = *in;
    int64_t count = 1;
    int ones, spread;
    if (a->to != KEEL_REDUCE_MEAN && a->to != KEEL_REDUCE_SUM)
        return keel_fail(KEEL_EUNSUP, "reduce: only the gradient of a sum or a mean can be "
                                      "differentiated");
    for (int i = 0; i < in->rank; i++) {
        if (!a->over[i]) continue;
        count *= in->dim[i];
        kept.dim[i] = 1;
    }
    KEEL_TRY(keel_derive_choice(d, 1, 1, &ones));
    KEEL_TRY(keel_derive_reshape(d, d->grad, &kept, &spread));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, spread, ones, out));
    return a->to == KEEL_REDUCE_SUM
               ? KEEL_OK
               : keel_derive_with(d, &keel_op_multiply, *out, 1 / (double)count, out);
}

const keel_op keel_op_reduce = {
    .name = "reduce",
    .args_size = sizeof(keel_reduce_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN | KEEL_READS_OUT,
    .goes = goes,
    .cases = (const keel_case[]){ { "4,5", NULL, "to 0 over 0" },
                                  { "2,3,4", NULL, "to 1 over 0,2 keepdims" },
                                  { "2,3,4", NULL, "to 2 over 1" },
                                  { "3,4", NULL, "to 3 over 0,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* NaN stays. */
static void REAL_(pick)(double *to, const REAL *x, const line *l, bool largest)
{
    for (int64_t k = 0; k < l->length; k++) {
        double *best = to + k * l->step;
        if (isnan(x[k]) || (largest ? x[k] > *best : x[k] < *best)) *best = x[k];
    }
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_reduce_args *a = c->node->args;
    const line l = line_of(c->node);
    const int64_t n_in = keel_row_count(&c->node->in[0]);
    const int64_t n_out = keel_row_count(&c->node->out[0]);
    const double first = a->to == KEEL_REDUCE_MAX   ? -INFINITY
                         : a->to == KEEL_REDUCE_MIN ? INFINITY
                                                    : 0;
    const double share = a->to == KEEL_REDUCE_MEAN ? (double)n_in / (double)n_out : 1;
    double *sum = c->scratch;
    for (int64_t row = 0; row < c->rows; row++) {
        const REAL *x = (const REAL *)c->in[0] + row * n_in;
        REAL *y = (REAL *)c->out[0] + row * n_out;
        for (int64_t i = 0; i < n_out; i++) sum[i] = first;
        for (int64_t i = 0; i < n_in; i += l.length, x += l.length) {
            double *to = sum + goes_to(c->node, i);
            if (a->to == KEEL_REDUCE_MEAN || a->to == KEEL_REDUCE_SUM)
                for (int64_t k = 0; k < l.length; k++) to[k * l.step] += x[k];
            else
                REAL_(pick)(to, x, &l, a->to == KEEL_REDUCE_MAX);
        }
        for (int64_t i = 0; i < n_out; i++) y[i] = (REAL)(sum[i] / share);
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_reduce_args *a = c->node->args;
    const int64_t n_in = keel_row_count(&c->node->in[0]);
    const int64_t n_out = keel_row_count(&c->node->out[0]);
    const bool picks = a->to == KEEL_REDUCE_MAX || a->to == KEEL_REDUCE_MIN;
    const double all = a->to == KEEL_REDUCE_MEAN ? (double)n_in / (double)n_out : 1;
    const line l = line_of(c->node);
    double *share = c->scratch;
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, dx += n_in) {
        const REAL *x = (const REAL *)c->in[0] + row * n_in;
        const REAL *y = (const REAL *)c->out[0] + row * n_out;
        const REAL *dy = (const REAL *)c->out_grad[0] + row * n_out;
        for (int64_t i = 0; i < n_out; i++) share[i] = picks ? 0 : all;
        for (int64_t i = 0; picks && i < n_in; i += l.length)
            for (int64_t k = 0, at = goes_to(c->node, i); k < l.length; k++, at += l.step)
                share[at] += x[i + k] == y[at];
        for (int64_t i = 0; i < n_in; i += l.length)
            for (int64_t k = 0, at = goes_to(c->node, i); k < l.length; k++, at += l.step) {
                const double g = picks && x[i + k] != y[at] ? 0 : dy[at] / share[at];
                dx[i + k] = (REAL)(c->in_adds[0] ? dx[i + k] + g : g);
            }
    }
}
#endif
