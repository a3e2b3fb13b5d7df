/* Weights that give all classes the same sum. */
#include "base/memory.h"
#include "data/stage.h"
#include "keel/train.h"
#include "tensor/shape.h"
#include <math.h>

/* The label in a target of n numbers; -1: none. */
static int64_t label_of(const double *y, int64_t n)
{
    int64_t best = 0;
    if (n == 1) return y[0] >= 0 && y[0] < 0x1p53 ? (int64_t)(y[0] + 0.5) : -1;
    for (int64_t k = 1; k < n; k++)
        if (y[k] > y[best]) best = k;
    return best;
}

typedef struct counting {
    const keel_dataset *d;
    int field; /* of the targets */
    double *y; /* [n] of a row */
    int64_t n;
    keel_row row;
    keel_scratch scratch;
    double *count; /* [classes] */
    int64_t classes;
    double rows;
} counting;

/* The row at a place of a dataset; `i` tells which it is. */
static keel_status count_row(counting *c, const keel_dataset *d, keel_position at, int64_t i)
{
    KEEL_TRY(keel_dataset_read(d, at, &c->row, &c->scratch));
    const int64_t label = label_of(c->y, c->n);
    if (label < 0 || label >= c->classes)
        return keel_fail(KEEL_EDATA,
                         "%s: row %lld has the label %g, which is not one of %lld classes",
                         keel_dataset_name(c->d), (long long)i, c->n == 1 ? c->y[0] : (double)label,
                         (long long)c->classes);
    c->count[label]++;
    c->rows++;
    return KEEL_OK;
}

/* An element: a row, or the rows of a batch. */
static keel_status count_element(counting *c, int64_t i)
{
    keel_position at = { .index = i };
    if (!c->d->origin->spec.batched) return count_row(c, c->d, at, i);
    const keel_applied *s = keel_stage_of_batch(c->d, &at);
    const int64_t rows = s->stage->batch_rows(s, at);
    for (int64_t k = 0; k < rows; k++)
        KEEL_TRY(count_row(c, s->parent[0], s->stage->batch_row(s, at, k), (int64_t)c->rows));
    return KEEL_OK;
}

static keel_status check(const keel_dataset *d, int field, int64_t classes)
{
    const keel_data_spec *spec = &d->origin->spec;
    const char *name = keel_dataset_name(d);
    keel_position first = { 0 };
    if (field < 0 || classes < 1)
        return keel_fail(KEEL_EARG, "%s: weights of %lld classes: there are no targets to count",
                         name, (long long)classes);
    if (spec->endless)
        return keel_fail(KEEL_EUNSUP,
                         "%s: never ends, so its classes cannot be counted first; give the weights",
                         name);
    if (!d->origin->source->read ||
        (spec->batched && d->rows > 0 && !keel_stage_of_batch(d, &first)))
        return keel_fail(KEEL_EUNSUP,
                         "%s: rows come one after another, so their classes cannot be counted "
                         "first; give the weights",
                         name);
    return keel_shape_count(&spec->field[field].shape) < 1
               ? keel_fail(KEEL_EARG, "%s: a target is empty", name)
               : KEEL_OK;
}

keel_status keel_dataset_balanced_weights(const keel_dataset *d, double *weight, int64_t classes)
{
    const keel_data_spec *spec = &d->origin->spec;
    keel_dtype want[KEEL_FIELDS_MAX];
    int64_t counts[KEEL_FIELDS_MAX] = { 0 };
    counting c = { .d = d,
                   .field = keel_spec_first(spec, KEEL_ROLE_TARGET),
                   .classes = classes,
                   .row = { .want = want, .count = counts } };
    KEEL_TRY(check(d, c.field, classes));
    c.n = counts[c.field] = keel_shape_count(&spec->field[c.field].shape);
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) want[i] = KEEL_FLOAT64;
    c.y = c.row.at[c.field] = keel_calloc((size_t)c.n, sizeof *c.y);
    c.count = keel_calloc((size_t)classes, sizeof *c.count);
    keel_status s = c.y && c.count ? KEEL_OK : KEEL_ENOMEM;
    for (int64_t i = 0; s >= 0 && i < d->rows; i++) s = count_element(&c, i);
    for (int64_t k = 0; s >= 0 && k < classes; k++)
        weight[k] = c.count[k] > 0 ? c.rows / ((double)classes * c.count[k]) : 1;
    keel_free(c.y);
    keel_free(c.count);
    keel_scratch_free(&c.scratch);
    return s;
}
