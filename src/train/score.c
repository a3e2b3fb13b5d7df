/* See score.h. The gradient of a loss is that of its numerator (rule 2 of ARCHITECTURE.md). A
 * single loss has seed 1 (or its weight), and the division is done when gradients are reduced. With
 * several losses each has its own divisor, so its seed is weight / divisor, and nothing is divided
 * later. A divisor that depends on the data (masks, ignored labels, sums of weights) is added up in
 * a meeting before backward. */
#include "train/score.h"
#include "base/memory.h"
#include "base/round.h"
#include "keel/custom.h"
#include <string.h>

/* The arguments of a loss or metric, from an op call. */
static keel_loss_call score_call(const keel_call *c, const void *args)
{
    const keel_node *n = c->node;
    const bool masked = n->n_in > KEEL_SCORE_MASK;
    return (keel_loss_call){
        .args = args,
        .prediction = &n->in[KEEL_SCORE_PREDICTION],
        .target = &n->in[KEEL_SCORE_TARGET],
        .rows = c->rows,
        .row = c->row,
        .y_pred = c->in[KEEL_SCORE_PREDICTION],
        .y_true = c->in[KEEL_SCORE_TARGET],
        .weight = c->in[KEEL_SCORE_WEIGHT],
        .weights = keel_row_count(&n->in[KEEL_SCORE_WEIGHT]),
        .mask = masked ? c->in[KEEL_SCORE_MASK] : NULL,
        .masks = masked ? keel_row_count(&n->in[KEEL_SCORE_MASK]) : 0,
        .scratch = c->scratch,
        .seed = 1,
    };
}

/* The call for row i only, since sums of rows are added in the order of the step's tree. */
static keel_loss_call row_of(const keel_loss_call *all, int64_t i, int real)
{
    const int64_t size = real ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    const int64_t p =
        keel_row_count(all->prediction) * (int64_t)keel_dtype_size(all->prediction->dtype);
    const int64_t t = keel_row_count(all->target) * (int64_t)keel_dtype_size(all->target->dtype);
    keel_loss_call row = *all;
    row.rows = 1;
    row.row += i;
    row.y_pred = (const char *)all->y_pred + i * p;
    row.y_true = (const char *)all->y_true + i * t;
    if (all->weight) row.weight = (const char *)all->weight + i * all->weights * size;
    if (all->mask) row.mask = (const char *)all->mask + i * all->masks * size;
    if (all->grad) row.grad = (char *)all->grad + i * p;
    return row;
}

/* Weights and masks of a row must match the first dims of its elements, so that each number applies
 * to the same number of elements. */
static keel_status check_beside(const keel_node *n, int in, int64_t elements, const char *what)
{
    char text[2][96];
    if (keel_row_count(&n->in[in]) <= 1) return KEEL_OK;
    const keel_shape *s = &n->in[in].shape, *p = &n->in[KEEL_SCORE_PREDICTION].shape;
    bool good = elements % keel_row_count(&n->in[in]) == 0;
    for (int i = 0; good && i < s->rank && keel_shape_count(s) > 1; i++)
        good = s->dim[i] == 1 || (i < p->rank && s->dim[i] == p->dim[i]);
    if (good) return KEEL_OK;
    keel_shape_text(text[0], s);
    keel_shape_text(text[1], p);
    return keel_fail(KEEL_ESHAPE, "%s of a row have shape %s, which does not fit predictions of %s",
                     what, text[0], text[1]);
}

_Static_assert((int)KEEL_LOSS_SUMS <= KEEL_SUMS_MAX, "workers add them up");

/* Losses overwrite their gradient. If the prediction has another loss as well, what that has left
 * is kept meanwhile: of a row, or of all rows, behind the scratch of the loss itself. */
static int64_t prediction_bytes(const keel_node *n)
{
    const keel_spec *s = &n->in[KEEL_SCORE_PREDICTION];
    return keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype);
}

static int64_t kept_at(const keel_node *n)
{
    const keel_loss_args *a = n->args;
    const keel_loss *l = a->loss;
    int64_t own = 0;
    if (l->scratch) own = l->scratch(&n->in[KEEL_SCORE_PREDICTION], &n->in[KEEL_SCORE_TARGET]);
    if (l->whole) own = a->rows * l->whole->scratch * (int64_t)sizeof(double);
    return keel_round_up(own, 64);
}

static void add_kept(void *grad, const void *kept, int64_t bytes, int real)
{
    for (int64_t i = 0; real && i < bytes / 8; i++) ((double *)grad)[i] += ((double *)kept)[i];
    for (int64_t i = 0; !real && i < bytes / 4; i++) ((float *)grad)[i] += ((float *)kept)[i];
}

static keel_status loss_infer(keel_node *n)
{
    const keel_loss_args *a = n->args;
    int64_t elements;
    KEEL_TRY(keel_loss_check(a->loss, a->args, &n->in[KEEL_SCORE_PREDICTION],
                             &n->in[KEEL_SCORE_TARGET], &elements));
    KEEL_TRY(check_beside(n, KEEL_SCORE_WEIGHT, elements, "weights"));
    if (n->n_in > KEEL_SCORE_MASK)
        KEEL_TRY(check_beside(n, KEEL_SCORE_MASK, elements, "the mask's numbers"));
    const keel_loss_whole *whole = a->loss->whole;
    n->sums = KEEL_LOSS_SUMS;
    int64_t record = KEEL_LOSS_TERMS;
    if (a->loss->scratch) {
        n->scratch = a->loss->scratch(&n->in[KEEL_SCORE_PREDICTION], &n->in[KEEL_SCORE_TARGET]);
        if (n->scratch > INT64_MAX / 64)
            return keel_fail(KEEL_ESHAPE, "%s: a row is too large", a->loss->type.name);
    }
    if (whole) {
        const int64_t own = whole->record(a->args, &n->in[KEEL_SCORE_PREDICTION]);
        if (n->n_in > KEEL_SCORE_MASK || keel_row_count(&n->in[KEEL_SCORE_WEIGHT]) > 1)
            return keel_fail(KEEL_EUNSUP,
                             "%s: it is a loss of all rows together, which are weighted as a "
                             "whole; it takes no mask and no weights inside of a row",
                             a->loss->type.name);
        if (!keel_mul_i64(own, whole->gathers ? a->rows : 1, &record) ||
            record > INT32_MAX - KEEL_LOSS_TERMS ||
            !keel_mul_i64(a->rows, whole->scratch * (int64_t)sizeof(double), &n->scratch))
            return keel_fail(KEEL_ESHAPE, "%s: %lld rows of %lld numbers are too many",
                             a->loss->type.name, (long long)a->rows, (long long)own);
        record += KEEL_LOSS_TERMS;
        if (whole->gathers) n->leaf = own + KEEL_LOSS_TERMS;
    }
    n->scratch = kept_at(n) + (whole ? a->rows : 1) * prediction_bytes(n);
    if (n->backward && (whole || a->meets)) {
        n->partial_backward = record;
        n->merged_backward = 1 + record;
    } else if (whole) {
        n->partial = record;
        n->merged = 1 + record;
    }
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

/* All rows of the step, of a loss that needs them; merged is {rows, elements, weights, record}. */
static keel_loss_all all_rows(const keel_call *c)
{
    return (keel_loss_all){ .rows = c->step->rows,
                            .weights = c->merged[2],
                            .record = c->merged + 1 + KEEL_LOSS_TERMS,
                            .scratch = c->scratch };
}

static double seed_of(const keel_call *c, const keel_loss_call *call, int real)
{
    const keel_loss_args *a = c->node->args;
    if (a->meets) {
        double sums[KEEL_LOSS_SUMS] = { 0, c->merged[1], c->merged[2] };
        if (a->loss->whole && a->loss->whole->count) {
            const keel_loss_all all = all_rows(c);
            a->loss->whole->count(call, real, &all, sums);
        }
        const double divisor = keel_loss_divisor(a->loss, a->args, sums);
        return divisor != 0 ? c->step->loss_seed[0] * a->weight / divisor : 0;
    }
    return c->step->loss_seed ? c->step->loss_seed[a->index] : a->weight;
}

keel_loss_call keel_loss_call_of(const keel_call *c, int real, bool gradients)
{
    const keel_loss_args *a = c->node->args;
    keel_loss_call call = score_call(c, a->args);
    call.grad = gradients && c->in_grad ? c->in_grad[KEEL_SCORE_PREDICTION] : NULL;
    if (call.grad) call.seed = seed_of(c, &call, real);
    return call;
}

static void run_loss(const keel_call *c, int real)
{
    const keel_loss_args *a = c->node->args;
    keel_loss_call call = keel_loss_call_of(c, real, true);
    const bool adds = call.grad && c->in_adds[KEEL_SCORE_PREDICTION];
    const int64_t bytes = prediction_bytes(c->node);
    char *kept = (char *)c->scratch + kept_at(c->node);
    if (a->loss->whole) {
        const keel_loss_all all = all_rows(c);
        call.sum = c->partial;
        if (adds) memcpy(kept, call.grad, (size_t)(c->rows * bytes));
        a->loss->whole->run(&call, real, &all);
        if (adds) add_kept(call.grad, kept, c->rows * bytes, real);
        return;
    }
    memset(c->partial, 0, (size_t)c->rows * KEEL_LOSS_SUMS * sizeof *c->partial);
    for (int64_t i = 0; i < c->rows; i++) {
        keel_loss_call row = row_of(&call, i, real);
        row.sum = c->partial + i * KEEL_LOSS_SUMS;
        if (adds) memcpy(kept, row.grad, (size_t)bytes);
        keel_loss_run(a->loss, real, &row);
        if (adds) add_kept(row.grad, kept, bytes, real);
    }
}

static void loss_f32(const keel_call *c)
{
    run_loss(c, 0);
}

static void loss_f64(const keel_call *c)
{
    run_loss(c, 1);
}

/* The record of each row: the number of its loss elements, and the sum of their weights; behind
 * them what a loss of all rows leaves. */
static void loss_terms(const keel_call *c, int real)
{
    const keel_loss_args *a = c->node->args;
    const keel_loss_call call = score_call(c, a->args);
    const keel_node *n = c->node;
    const int64_t length = keel_node_leaf(n, n->partial ? KEEL_PARTIAL : KEEL_PARTIAL_BACKWARD);
    int64_t elements = 1;
    if (a->loss->whole)
        (void)keel_loss_check(a->loss, a->args, call.prediction, call.target, &elements);
    for (int64_t i = 0; i < c->rows; i++) {
        double sums[KEEL_LOSS_SUMS] = { 0 }, *record = c->partial + i * length;
        keel_loss_call row = row_of(&call, i, real);
        row.sum = sums;
        if (a->loss->whole) {
            a->loss->whole->leave(&row, real, record + KEEL_LOSS_TERMS);
            sums[1] = (double)elements;
            sums[2] = (double)elements * keel_element_weight(&row, real, 1, 0, 0);
        } else
            keel_loss_run(a->loss, real, &row);
        record[0] = sums[1];
        record[1] = sums[2];
    }
}

/* What rows have left is added up, or put one behind the other. */
static void combine_terms(const keel_node *n, keel_record left, keel_record right, double *out)
{
    const keel_loss_args *a = n->args;
    const keel_loss_whole *whole = a->loss->whole;
    if (!whole || !whole->gathers) {
        keel_combine_records(n, NULL, n->partial + n->partial_backward, left, right, out);
        return;
    }
    const size_t own = (size_t)whole->record(a->args, &n->in[KEEL_SCORE_PREDICTION]);
    const size_t on_left = own * (size_t)left.rows, on_right = own * (size_t)right.rows;
    double sums[KEEL_LOSS_TERMS];
    for (int k = 0; k < KEEL_LOSS_TERMS; k++) sums[k] = left.data[k] + right.data[k];
    /* out may be either of them: the right goes first, as it moves away from the left */
    memmove(out + KEEL_LOSS_TERMS + on_left, right.data + KEEL_LOSS_TERMS, on_right * sizeof *out);
    memmove(out + KEEL_LOSS_TERMS, left.data + KEEL_LOSS_TERMS, on_left * sizeof *out);
    memcpy(out, sums, sizeof sums);
}

static void loss_terms_f32(const keel_call *c)
{
    loss_terms(c, 0);
}

static void loss_terms_f64(const keel_call *c)
{
    loss_terms(c, 1);
}

const keel_op keel_loss_op = {
    .name = "loss",
    .args_size = sizeof(keel_loss_args),
    .infer = loss_infer,
    .forward = { loss_f32, loss_f64 },
    .backward = { loss_f32, loss_f64 },
    .backward_reads = KEEL_READS_IN,
    .partial = { loss_terms_f32, loss_terms_f64 },
    .partial_backward = { loss_terms_f32, loss_terms_f64 },
    .combine = combine_terms,
    .loss = true,
};

static keel_status metric_infer(keel_node *n)
{
    const keel_metric_args *a = n->args;
    keel_dense d = { 0 };
    KEEL_TRY(keel_target_check(keel_metric_target(a->metric, a->args), a->metric->type.name,
                               &n->in[KEEL_SCORE_PREDICTION], &n->in[KEEL_SCORE_TARGET], &d));
    if (a->weighted) KEEL_TRY(check_beside(n, KEEL_SCORE_WEIGHT, d.elements, "weights"));
    if (n->n_in > KEEL_SCORE_MASK)
        KEEL_TRY(check_beside(n, KEEL_SCORE_MASK, d.elements, "the mask's numbers"));
    n->sums = keel_metric_sums(a->metric, a->args, &n->in[KEEL_SCORE_PREDICTION],
                               &n->in[KEEL_SCORE_TARGET]);
    return keel_node_add_out(n, &(keel_spec){ .dtype = n->real });
}

static void run_metric(const keel_call *c, int real)
{
    const keel_metric_args *a = c->node->args;
    keel_loss_call call = score_call(c, a->args);
    if (!a->weighted) call.weight = NULL;
    const int64_t n = c->node->sums;
    memset(c->partial, 0, (size_t)(c->rows * n) * sizeof *c->partial);
    for (int64_t i = 0; i < c->rows; i++) {
        const keel_loss_call row = row_of(&call, i, real);
        keel_metric_update(a->metric, real, &row, c->partial + i * n);
    }
}

static void metric_f32(const keel_call *c)
{
    run_metric(c, 0);
}

static void metric_f64(const keel_call *c)
{
    run_metric(c, 1);
}

const keel_op keel_metric_op = {
    .name = "metric",
    .args_size = sizeof(keel_metric_args),
    .infer = metric_infer,
    .forward = { metric_f32, metric_f64 },
};

/* out may be either of them. */
static void merge_states(const keel_node *n, keel_record left, keel_record right, double *out)
{
    const keel_metric_args *a = n->args;
    double from[KEEL_METRIC_STATE_MAX];
    const size_t size = (size_t)n->sums * sizeof *from;
    memcpy(from, right.data, size);
    memmove(out, left.data, size);
    a->metric->merge(a->args, out, from, n->sums);
}

const keel_op keel_metric_merged_op = {
    .name = "metric",
    .args_size = sizeof(keel_metric_args),
    .infer = metric_infer,
    .forward = { metric_f32, metric_f64 },
    .combine = merge_states,
};
