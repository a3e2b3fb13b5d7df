/* What layers add to the loss, as an op of a graph with losses: a term of each row. The loss gets
 * their mean over the rows of the global step, whatever their weights, so the gradient is divided
 * by their number at once. */
#ifndef REAL
#include "layers/layer.h"
#include <math.h>

typedef keel_activity args_t;

static keel_status infer(keel_node *n)
{
    n->sums = 1;
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

#define REAL_FILE "layers/activity.c"
#include "ops/real.h"

const keel_op keel_activity_op = {
    .name = "activity",
    .args_size = sizeof(args_t),
    .infer = infer,
    .forward = REALS(run),
    .backward = REALS(run),
    .backward_reads = KEEL_READS_IN,
    .loss = true,
};

keel_status keel_emit_activity(keel_emit *e, const keel_activity *term, keel_value in)
{
    keel_value real, ignored;
    if (!e->graph->scored || e->direct) return KEEL_OK;
    if (term->l1 == 0 && term->l2 == 0 && term->mean == 0) return KEEL_OK;
    KEEL_TRY(keel_graph_cast(e->graph, in, e->graph->real, &real));
    const keel_dtype held = e->graph->held;
    e->graph->held = e->graph->real;
    const keel_status s = keel_emit_on(e, &keel_activity_op, term, &real, 1, &ignored);
    e->graph->held = held;
    return s;
}

keel_status keel_emit_regularized(keel_emit *e, const keel_object *regularizer)
{
    keel_penalty p = { 0 };
    if (!regularizer->type) return KEEL_OK;
    ((const keel_regularizer *)regularizer->type)->penalty(regularizer->args, &p);
    if (p.orthogonal != 0)
        return keel_fail(KEEL_EUNSUP,
                         "activity_regularizer: %s would compare the rows of a batch with each "
                         "other, which is not supported",
                         regularizer->type->name);
    for (int i = 0; i < e->n_out; i++)
        if (keel_dtype_flows(keel_graph_spec(e->graph, e->out[i])->dtype))
            KEEL_TRY(keel_emit_activity(e, &(keel_activity){ .l1 = p.l1, .l2 = p.l2 }, e->out[i]));
    return KEEL_OK;
}

#else
/* Forward computes the sums, backward the sums and gradients; a graph with gradients runs only
 * backward. */
static void REAL_(run)(const keel_call *c)
{
    const args_t *a = c->node->args;
    const int64_t n = keel_row_count(&c->node->in[0]);
    const REAL *x = c->in[0];
    REAL *dx = c->in_grad ? c->in_grad[0] : NULL;
    const bool add = dx && c->in_adds[0];
    const double scale = c->step->loss_seed ? c->step->loss_seed[0] : 1;
    const double share = n ? a->mean / (double)n : 0;
    const REAL g0 = (REAL)(scale * share / (double)c->step->rows);
    const REAL g1 = (REAL)(scale * a->l1 / (double)c->step->rows);
    const REAL g2 = (REAL)(scale * 2 * a->l2 / (double)c->step->rows);
    for (int64_t i = 0; i < c->rows; i++, x += n) {
        double sum = 0, sizes = 0, squares = 0;
        for (int64_t k = 0; k < n; k++) {
            sum += (double)x[k];
            sizes += fabs((double)x[k]);
            squares += (double)x[k] * (double)x[k];
        }
        c->partial[i] = share * sum + a->l1 * sizes + a->l2 * squares;
        if (!dx) continue;
        for (int64_t k = 0; k < n; k++) {
            const REAL sign = (REAL)((x[k] > 0) - (x[k] < 0));
            dx[k] = (add ? dx[k] : 0) + g0 + g1 * sign + g2 * x[k];
        }
        dx += n;
    }
}
#endif
