/* Softmax along the last axis over the elements that are seen; the others are 0. These are the
 * weights of attention. x is [.., T, S]. There may be several masks, of the same rank, with dims
 * that are equal or 1; an element is seen if all its masks are above one half. dx = y (dy - sum(y
 * dy)); no gradient flows where nothing is seen. */
#ifndef REAL
#include "ops/cases.h"
#include "ops/dot_product_attention.h"
#include "ops/infer.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    char x[96], mask[96];
    KEEL_TRY(keel_infer_check(n, n->n_in == 1 ? 1 : -1, 0, 0));
    const keel_shape *in = &n->in[0].shape;
    keel_shape_text(x, in);
    if (in->rank < 2)
        return keel_fail(KEEL_ESHAPE, "masked_softmax: rows of %s, not (.., T, S)", x);
    for (int i = 1; i < n->n_in; i++) {
        keel_shape over = *in;
        if (keel_spread_over(&over, &n->in[i].shape) && keel_shape_equal(&over, in)) continue;
        keel_shape_text(mask, &n->in[i].shape);
        return keel_fail(KEEL_ESHAPE, "masked_softmax: a mask of %s does not fit values of %s",
                         mask, x);
    }
    const keel_spec blind = { KEEL_UINT8,
                              KEEL_SHAPE(keel_row_count(&n->in[0]) / in->dim[in->rank - 1]) };
    if (n->backward) KEEL_TRY(keel_node_add_saved(n, &blind));
    return keel_infer_out(n, in);
}

/* The elements [first, end) of line o of a row that the arguments let it see. */
static void range_of(const keel_node *n, int64_t o, int64_t *first, int64_t *end)
{
    const keel_shape *in = &n->in[0].shape;
    keel_seen_range(n->args, o % in->dim[in->rank - 2], in->dim[in->rank - 1], first, end);
}

#define REAL_FILE "ops/masked_softmax.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_masked_softmax_args *a = args;
    double window = 0;
    a->causal = keel_case_has(text, "causal");
    a->uniform = keel_case_has(text, "uniform");
    keel_case_number(text, "window", &window);
    a->window = (int64_t)window;
}

const keel_op keel_op_masked_softmax = {
    .name = "masked_softmax",
    .costly = true,
    .args_size = sizeof(keel_masked_softmax_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT | KEEL_READS_SAVED,
    .cases = (const keel_case[]){ { "4,5", NULL, NULL },
                                  { "2,3,4|2,3,4", NULL, NULL },
                                  { "2,3,4|1,3,1", NULL, "uniform" },
                                  { "3,5|1,5", NULL, "causal" },
                                  { "2,3,5|1,3,1|1,1,5|2,3,5", NULL, NULL },
                                  { "5,3", NULL, "window 1 causal" },
                                  { "2,6,4", NULL, "window 2 uniform" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* Whether element j of line o of the row is seen. */
static bool REAL_(sees)(const keel_call *c, int64_t row, int64_t o, int64_t j)
{
    const keel_node *n = c->node;
    const keel_shape *in = &n->in[0].shape;
    int64_t first, end;
    range_of(n, o, &first, &end);
    bool seen = j >= first && j < end;
    for (int i = 1; i < n->n_in && seen; i++) {
        const REAL *mask = (const REAL *)c->in[i] + row * keel_row_count(&n->in[i]);
        const int64_t at = o * in->dim[in->rank - 1] + j;
        seen = mask[keel_spread_index(in, &n->in[i].shape, at)] > (REAL)0.5;
    }
    return seen;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const int64_t s = n->in[0].shape.dim[n->in[0].shape.rank - 1];
    const int64_t lines = keel_row_count(&n->in[0]) / s;
    const bool uniform = ((const keel_masked_softmax_args *)n->args)->uniform;
    uint8_t *blind = n->n_saved ? c->saved[0] : NULL;
    for (int64_t row = 0; row < c->rows; row++) {
        for (int64_t o = 0; o < lines; o++) {
            const REAL *x = (const REAL *)c->in[0] + (row * lines + o) * s;
            REAL *y = (REAL *)c->out[0] + (row * lines + o) * s;
            double most = -INFINITY, sum = 0;
            bool any = false;
            for (int64_t j = 0; j < s; j++) {
                if (!REAL_(sees)(c, row, o, j)) continue;
                if (x[j] > most) most = (double)x[j];
                any = true;
            }
            for (int64_t j = 0; j < s; j++)
                sum += y[j] = REAL_(sees)(c, row, o, j) ? (REAL)exp((double)x[j] - most) : (REAL)0;
            for (int64_t j = 0; j < s; j++)
                y[j] = (REAL)(any ? y[j] / sum : uniform ? 1.0 / (double)s : 0);
            if (blind) blind[row * lines + o] = !any;
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const int64_t s = n->in[0].shape.dim[n->in[0].shape.rank - 1];
    const int64_t lines = c->rows * (keel_row_count(&n->in[0]) / s);
    const uint8_t *blind = c->saved[0];
    for (int64_t o = 0; c->in_grad[0] && o < lines; o++) {
        const REAL *y = (const REAL *)c->out[0] + o * s, *dy = (const REAL *)c->out_grad[0] + o * s;
        REAL *dx = (REAL *)c->in_grad[0] + o * s;
        double sum = 0;
        for (int64_t j = 0; j < s; j++) sum += (double)y[j] * dy[j];
        for (int64_t j = 0; j < s; j++) {
            const double g = blind[o] ? 0 : y[j] * (dy[j] - sum);
            dx[j] = (REAL)(c->in_adds[0] ? dx[j] + g : g);
        }
    }
    for (int k = 1; k < n->n_in; k++) {
        REAL *dmask = c->in_grad[k];
        for (int64_t i = 0; dmask && !c->in_adds[k] && i < c->rows * keel_row_count(&n->in[k]); i++)
            dmask[i] = 0;
    }
}
#endif
