/* See _overlap.h. */
#ifndef REAL
#include "losses/_overlap.h"
#include <string.h>

enum { INSIDE, TRUE, PREDICTED, SUMS };
enum { GROUPS_MAX = 1024 }; /* a row's own sums are kept on the stack */
#define EPSILON 1e-7        /* Keras's backend.epsilon() */

/* How the numbers of a row fall into groups. */
typedef struct grouping {
    keel_shape shape;
    bool kept[KEEL_RANK_MAX]; /* dims of a row that are not summed over */
    bool over_rows;
    int64_t groups, count;
} grouping;

static bool is_summed(const keel_overlap *a, int dim, int rank)
{
    bool found = a->axis.count < 0;
    for (int i = 0; i < a->axis.count; i++)
        found = found || a->axis.at[i] == dim || a->axis.at[i] + rank == dim;
    return found;
}

static grouping group(const keel_overlap *a, const keel_spec *prediction)
{
    grouping g = { .shape = prediction->shape, .groups = 1 };
    const int rank = g.shape.rank + 1; /* as Keras counts: 0 are the rows */
    g.over_rows = is_summed(a, 0, rank);
    g.count = keel_shape_count(&g.shape);
    for (int i = 0; i < g.shape.rank; i++)
        if ((g.kept[i] = !is_summed(a, i + 1, rank))) g.groups *= g.shape.dim[i];
    return g;
}

static int64_t group_of(const grouping *g, int64_t j)
{
    int64_t at = 0, stride = 1;
    for (int i = g->shape.rank - 1; i >= 0 && g->groups > 1; i--) {
        if (g->kept[i]) {
            at += j % g->shape.dim[i] * stride;
            stride *= g->shape.dim[i];
        }
        j /= g->shape.dim[i];
    }
    return at;
}

keel_status keel_overlap_check(const void *args, const keel_spec *prediction,
                               const keel_spec *target, int64_t *elements)
{
    const keel_overlap *a = args;
    const int rank = prediction->shape.rank + 1;
    for (int i = 0; i < a->axis.count; i++)
        if (a->axis.at[i] < -rank || a->axis.at[i] >= rank)
            return keel_fail(KEEL_EARG, "axis %lld: predictions have %d dims, rows included",
                             (long long)a->axis.at[i], rank);
    if (a->axis.count >= 0 && !keel_shape_equal(&prediction->shape, &target->shape))
        return keel_fail(KEEL_ESHAPE, "with an axis, targets must have the shape of predictions");
    const grouping g = group(a, prediction);
    if (!g.over_rows && g.groups > GROUPS_MAX)
        return keel_fail(KEEL_EUNSUP, "axis leaves %lld sums for a row; there may be %d",
                         (long long)g.groups, GROUPS_MAX);
    *elements = g.over_rows ? 1 : g.groups;
    return KEEL_OK;
}

static int64_t record(const void *args, const keel_spec *prediction)
{
    const grouping g = group(args, prediction);
    return g.over_rows ? SUMS * g.groups : 0;
}

static double below(const keel_overlap *a, const double *sum)
{
    return a->inside * sum[INSIDE] + a->of_true * sum[TRUE] + a->of_pred * sum[PREDICTED] + EPSILON;
}

/* Of the groups whose sums these are: the sum of their losses. */
static double losses_of(const keel_overlap *a, const double *sum, int64_t groups)
{
    double all = 0;
    for (int64_t k = 0; k < groups; k++, sum += SUMS)
        all += 1 - a->twice * sum[INSIDE] / below(a, sum);
    return all;
}

/* The slope of a group's loss is at_true t + always. */
static void slope_of(const keel_overlap *a, const double *sum, double *at_true, double *always)
{
    const double d = below(a, sum);
    *at_true = -a->twice * (d - sum[INSIDE] * a->inside) / (d * d);
    *always = a->twice * sum[INSIDE] * a->of_pred / (d * d);
}

#define REAL_FILE "losses/_overlap.c"
#include "ops/real.h"

static void leave(const keel_loss_call *c, int real, double *to)
{
    const grouping g = group(c->args, c->prediction);
    if (!g.over_rows) return;
    if (real)
        sums_f64(&g, c->y_pred, c->y_true, to);
    else
        sums_f32(&g, c->y_pred, c->y_true, to);
}

static void run(const keel_loss_call *c, int real, const keel_loss_all *all)
{
    const keel_overlap *a = c->args;
    const grouping g = group(a, c->prediction);
    const size_t row_bytes = (size_t)g.count * (real ? sizeof(double) : sizeof(float));
    const double groups = (double)g.groups;
    /* Keras: a sum over rows is one number, which counts once if rows have no weights */
    const bool sums = a->reduction == KEEL_REDUCTION_SUM || a->reduction == KEEL_REDUCTION_NONE;
    const bool once = g.over_rows && sums && !c->weight;
    const double loss = g.over_rows ? losses_of(a, all->record, g.groups) : 0;
    for (int64_t i = 0; i < c->rows; i++) {
        const void *p = (const char *)c->y_pred + (size_t)i * row_bytes;
        const void *t = (const char *)c->y_true + (size_t)i * row_bytes;
        void *grad = c->grad ? (char *)c->grad + (size_t)i * row_bytes : NULL;
        const double w = keel_element_weight(c, real, 1, i, 0);
        double own[SUMS * GROUPS_MAX], *sum = c->sum + 3 * i, factor;
        const double *of = all->record;
        if (g.over_rows) {
            sum[0] = once ? loss / (double)all->rows : w * loss / groups;
            sum[1] = once ? 1 / (double)all->rows : 1;
            sum[2] = w;
            factor = once ? 1 : all->weights / groups;
        } else {
            if (w == 0 && grad) memset(grad, 0, row_bytes);
            sum[0] = 0;
            sum[1] = groups;
            sum[2] = w * groups;
            if (w == 0) continue; /* it may have any values, even NaN */
            if (real)
                sums_f64(&g, p, t, own);
            else
                sums_f32(&g, p, t, own);
            of = own;
            sum[0] = w * losses_of(a, own, g.groups);
            factor = w;
        }
        if (!grad) continue;
        if (real)
            slopes_f64(a, &g, of, t, c->seed * factor, grad);
        else
            slopes_f32(a, &g, of, t, c->seed * factor, grad);
    }
}

const keel_loss_whole keel_overlap_whole = { .record = record, .leave = leave, .run = run };

#else
static void REAL_(sums)(const grouping *g, const REAL *p, const REAL *t, double *to)
{
    memset(to, 0, (size_t)g->groups * SUMS * sizeof *to);
    for (int64_t j = 0; j < g->count; j++) {
        double *sum = to + group_of(g, j) * SUMS;
        sum[INSIDE] += (double)t[j] * (double)p[j];
        sum[TRUE] += (double)t[j];
        sum[PREDICTED] += (double)p[j];
    }
}

static void REAL_(slopes)(const keel_overlap *a, const grouping *g, const double *sum,
                          const REAL *t, double scale, REAL *grad)
{
    double at_true = 0, always = 0;
    int64_t at = -1;
    for (int64_t j = 0; j < g->count; j++) {
        const int64_t k = group_of(g, j);
        if (k != at) slope_of(a, sum + (at = k) * SUMS, &at_true, &always);
        grad[j] = (REAL)(scale * (at_true * (double)t[j] + always));
    }
}
#endif
