/* Circle loss (Sun et al. 2020, arXiv 2002.10857) of embeddings e_i of length 1 and their labels.
 * With d_ij = max(1 - e_i e_j, 0), a row's loss is
 *
 *     softplus(log sum over j of its label of exp(-gamma (margin + d) (margin - d))
 *              + log sum over the other j of exp(gamma max(1 + margin - d, 0) (1 - margin - d)))
 *
 * over all rows j of the step, so rows leave what they are, and each worker computes the sums of
 * all of them. Rows whose loss is 0, such as those that are alone with their label, do not count,
 * as in Keras. */
#include "losses/loss.h"
#include "ops/op.h"
#include <math.h>

typedef struct args_t {
    int reduction;
    double gamma, margin;
    bool remove_diagonal;
} args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_FLOAT(args_t, gamma, "80.0", -1e30, 1e30, "factor of the exponents"),
    KEEL_FLOAT(args_t, margin, "0.4", -1e30, 1e30, "how far classes are to be apart"),
    KEEL_BOOL(args_t, remove_diagonal, "true", "a row is no neighbour of itself"),
    { 0 },
};

/* A row's record: its embedding, its label and its weight. */
enum { LABEL, WEIGHT, BESIDE };
/* What is computed of a row as it looks at all others. */
enum { SAME, OTHERS, LOSS, SCRATCH };

typedef struct rows_t {
    const args_t *a;
    int64_t rows, dims;
    const double *record;
    double *of; /* [rows][SCRATCH] */
} rows_t;

static const double *embedding(const rows_t *r, int64_t i)
{
    return r->record + i * (r->dims + BESIDE);
}

static double beside(const rows_t *r, int64_t i, int what)
{
    return embedding(r, i)[r->dims + what];
}

static double similarity(const rows_t *r, int64_t i, int64_t j)
{
    const double *x = embedding(r, i), *y = embedding(r, j);
    double sum = 0;
    for (int64_t k = 0; k < r->dims; k++) sum += x[k] * y[k];
    return sum;
}

static bool is_same(const rows_t *r, int64_t i, int64_t j)
{
    return beside(r, i, LABEL) == beside(r, j, LABEL);
}

static bool is_removed(const rows_t *r, int64_t i, int64_t j)
{
    return i == j && r->a->remove_diagonal;
}

/* The exponent of a pair and its slope by the similarity. */
static double exponent(const args_t *a, bool same, double s, double *slope)
{
    const double d = 1 - s > 0 ? 1 - s : 0, by_s = 1 - s >= 0 ? -1 : 0;
    if (same) {
        const bool in = a->margin + d >= 0;
        const double weight = in ? a->margin + d : 0;
        *slope = by_s * -a->gamma * ((in ? a->margin - d : 0) - weight);
        return -a->gamma * weight * (a->margin - d);
    }
    const bool in = 1 + a->margin - d >= 0;
    const double weight = in ? 1 + a->margin - d : 0;
    *slope = by_s * a->gamma * ((in ? -(1 - a->margin - d) : 0) - weight);
    return a->gamma * weight * (1 - a->margin - d);
}

static double log_add(double x, double y)
{
    const double most = x > y ? x : y, least = x > y ? y : x;
    return least == -INFINITY ? most : most + log1p(exp(least - most));
}

/* The sums and the loss of every row of the step. */
static rows_t look(const keel_loss_call *c, int real, const keel_loss_all *all)
{
    const rows_t r = { .a = c->args,
                       .rows = all->rows,
                       .dims = keel_row_count(c->prediction),
                       .record = all->record,
                       .of = all->scratch };
    for (int64_t i = 0; i < r.rows; i++) {
        double sum[2] = { -INFINITY, -INFINITY }, ignored;
        for (int64_t j = 0; j < r.rows; j++) {
            const bool same = is_same(&r, i, j);
            if (is_removed(&r, i, j)) continue;
            const double x = exponent(r.a, same, similarity(&r, i, j), &ignored);
            sum[!same] = log_add(sum[!same], x);
        }
        const double x = sum[SAME] + sum[OTHERS];
        const double loss = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
        r.of[i * SCRATCH + SAME] = sum[SAME];
        r.of[i * SCRATCH + OTHERS] = sum[OTHERS];
        r.of[i * SCRATCH + LOSS] = real ? loss : (double)(float)loss;
    }
    return r;
}

/* How much the loss of row i, by its weight, changes by its similarity with row j. */
static double slope_of(const rows_t *r, int64_t i, int64_t j, double s)
{
    const double *of = r->of + i * SCRATCH, weight = beside(r, i, WEIGHT);
    const bool same = is_same(r, i, j);
    double slope;
    if (is_removed(r, i, j) || !(of[LOSS] > 0) || weight == 0) return 0;
    const double x = exponent(r->a, same, s, &slope);
    return weight / (1 + exp(-of[SAME] - of[OTHERS])) * exp(x - of[!same]) * slope;
}

static void set_gradient(const rows_t *r, int64_t k, int real, double scale, void *grad, int64_t at)
{
    const int64_t n = r->dims;
    for (int64_t d = 0; d < n; d++)
        if (real)
            ((double *)grad)[at * n + d] = 0;
        else
            ((float *)grad)[at * n + d] = 0;
    for (int64_t i = 0; i < r->rows; i++) {
        const double s = similarity(r, k, i);
        const double by = scale * (slope_of(r, k, i, s) + slope_of(r, i, k, s));
        const double *x = embedding(r, i);
        for (int64_t d = 0; by != 0 && d < n; d++)
            if (real)
                ((double *)grad)[at * n + d] += by * x[d];
            else
                ((float *)grad)[at * n + d] += (float)(by * x[d]);
    }
}

static int64_t record(const void *args, const keel_spec *prediction)
{
    (void)args;
    return keel_row_count(prediction) + BESIDE;
}

static void leave(const keel_loss_call *c, int real, double *to)
{
    const int64_t n = keel_row_count(c->prediction);
    for (int64_t d = 0; d < n; d++) to[d] = keel_real_at(c->y_pred, real, d);
    to[n + LABEL] = trunc(keel_label_at(c->y_true, c->target->dtype, 0));
    to[n + WEIGHT] = keel_element_weight(c, real, 1, 0, 0);
}

static void run(const keel_loss_call *c, int real, const keel_loss_all *all)
{
    const rows_t r = look(c, real, all);
    for (int64_t i = 0; i < c->rows; i++) {
        const double loss = r.of[(c->row + i) * SCRATCH + LOSS];
        const double w = beside(&r, c->row + i, WEIGHT);
        double *sum = c->sum + 3 * i;
        sum[0] = w * loss;
        sum[1] = loss > 0;
        sum[2] = loss > 0 ? w : 0;
        if (c->grad) set_gradient(&r, c->row + i, real, c->seed, c->grad, i);
    }
}

static void count(const keel_loss_call *c, int real, const keel_loss_all *all, double sum[3])
{
    const rows_t r = look(c, real, all);
    sum[1] = sum[2] = 0;
    for (int64_t i = 0; i < r.rows; i++) {
        const bool counts = r.of[i * SCRATCH + LOSS] > 0;
        sum[1] += counts;
        sum[2] += counts ? beside(&r, i, WEIGHT) : 0;
    }
}

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements)
{
    (void)args;
    (void)target;
    (void)elements;
    if (prediction->shape.rank == 1) return KEEL_OK;
    return keel_fail(KEEL_ESHAPE, "Circle: a row of predictions has %d dims; it must be a vector",
                     prediction->shape.rank);
}

/* Rows whose loss is 0 do not count. */
static bool leaves_out(const void *args)
{
    (void)args;
    return true;
}

static const keel_loss_whole whole = {
    .record = record,
    .gathers = true,
    .scratch = SCRATCH,
    .leave = leave,
    .run = run,
    .count = count,
};

const keel_loss keel_loss_circle = {
    .type = {
        .name = "Circle",
        .module = "keras.losses",
        .help = "embeddings of one label come close, those of others move apart",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .target = KEEL_TARGET_LABEL,
    .whole = &whole,
    .leaves_out = leaves_out,
    .check = check,
};
