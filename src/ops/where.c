/* y = a where the condition is above one half, b elsewhere. Dims are equal or 1 (broadcasting); a
 * and b may be constants of the args. Keras: ops.where. */
#ifndef REAL
#include "ops/goes.h"
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"

/* The input that has value `which` (0: a, 1: b); -1: it is a constant. */
static int input_of(const keel_node *n, int which)
{
    const keel_where_args *a = n->args;
    if (a->fixed[which]) return -1;
    return which == 0 || a->fixed[0] ? 1 : 2;
}

static keel_status infer(keel_node *n)
{
    const keel_where_args *a = n->args;
    char first[96], second[96];
    KEEL_TRY(keel_infer_check(n, 3 - a->fixed[0] - a->fixed[1], 0, 0));
    keel_shape out = n->in[0].shape;
    int64_t most = 0;
    for (int i = 1; i < n->n_in; i++) {
        if (!keel_spread_over(&out, &n->in[i].shape)) {
            keel_shape_text(first, &out);
            keel_shape_text(second, &n->in[i].shape);
            return keel_fail(KEEL_ESHAPE, "where: rows of %s and %s do not go together", first,
                             second);
        }
        if (keel_row_count(&n->in[i]) > most) most = keel_row_count(&n->in[i]);
    }
    KEEL_TRY(keel_infer_out(n, &out));
    if (n->backward) n->scratch = 8 * most;
    return KEEL_OK;
}

#define REAL_FILE "ops/where.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_where_args *a = args;
    a->fixed[0] = keel_case_number(text, "left", &a->constant[0]);
    a->fixed[1] = keel_case_number(text, "right", &a->constant[1]);
}

const keel_op keel_op_where = {
    .name = "where",
    .args_size = sizeof(keel_where_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_FIRST,
    .goes = keel_goes_spread,
    .cases = (const keel_case[]){ { "4,5|4,5|4,5", NULL, NULL },
                                  { "4,1|4,5|1,5", NULL, NULL },
                                  { "6|6", NULL, "right 1.5" },
                                  { "6|6", NULL, "left 1.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static bool REAL_(is_a)(const keel_call *c, int64_t row, int64_t i)
{
    const keel_spec *s = &c->node->in[0];
    const REAL *x = (const REAL *)c->in[0] + row * keel_row_count(s);
    return x[keel_spread_index(&c->node->out[0].shape, &s->shape, i)] > (REAL)0.5;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const keel_where_args *a = n->args;
    const int64_t count = keel_row_count(&n->out[0]);
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t i = 0; i < count; i++) {
            const int which = !REAL_(is_a)(c, row, i), k = input_of(n, which);
            if (k < 0) {
                y[row * count + i] = (REAL)a->constant[which];
                continue;
            }
            const REAL *x = (const REAL *)c->in[k] + row * keel_row_count(&n->in[k]);
            y[row * count + i] = x[keel_spread_index(&n->out[0].shape, &n->in[k].shape, i)];
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const int64_t count = keel_row_count(&n->out[0]);
    const REAL *dy = c->out_grad[0];
    REAL *of_condition = c->in_grad[0];
    for (int which = 0; which < 2; which++) {
        const int k = input_of(n, which);
        REAL *dx = k < 0 ? NULL : c->in_grad[k];
        const int64_t own = k < 0 ? 0 : keel_row_count(&n->in[k]);
        double *sum = c->scratch;
        for (int64_t row = 0; dx && row < c->rows; row++, dx += own) {
            for (int64_t i = 0; i < own; i++) sum[i] = 0;
            for (int64_t i = 0; i < count; i++)
                if (REAL_(is_a)(c, row, i) == !which)
                    sum[keel_spread_index(&n->out[0].shape, &n->in[k].shape, i)] +=
                        dy[row * count + i];
            for (int64_t i = 0; i < own; i++)
                dx[i] = (REAL)(c->in_adds[k] ? dx[i] + sum[i] : sum[i]);
        }
    }
    for (int64_t i = 0; of_condition && !c->in_adds[0] && i < c->rows * keel_row_count(&n->in[0]);
         i++)
        of_condition[i] = 0;
}
#endif
