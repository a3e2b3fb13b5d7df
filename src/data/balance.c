/* Weights that give all classes the same sum. */
#include "base/memory.h"
#include "data/source.h"
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

keel_status keel_dataset_balanced_weights(const keel_dataset *d, double *weight, int64_t classes)
{
    const keel_data_origin *o = d->origin;
    const int field = keel_spec_first(&o->spec, KEEL_ROLE_TARGET);
    keel_dtype want[KEEL_FIELDS_MAX];
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    if (field < 0 || classes < 1)
        return keel_fail(KEEL_EARG, "%s: weights of %lld classes: there are no targets to count",
                         o->name, (long long)classes);
    if (!o->source->read)
        return keel_fail(KEEL_EUNSUP,
                         "%s: rows come one after another, so their classes cannot be counted "
                         "first; give the weights",
                         o->name);
    const int64_t n = keel_shape_count(&o->spec.field[field].shape);
    double *y = n < 1 ? NULL : keel_calloc((size_t)n, sizeof *y);
    double *count = keel_calloc((size_t)classes, sizeof *count);
    if (!y || !count)
        s = n < 1 ? keel_fail(KEEL_EARG, "%s: a target is empty", o->name) : KEEL_ENOMEM;
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) want[i] = KEEL_FLOAT64;
    keel_row row = { .want = want };
    row.at[field] = y;
    for (int64_t i = 0; s >= 0 && i < d->rows; i++) {
        if ((s = o->source->read(o->state, keel_dataset_index(d, i), &row, &scratch)) < 0) break;
        const int64_t label = label_of(y, n);
        if (label < 0 || label >= classes)
            s = keel_fail(KEEL_EDATA,
                          "%s: row %lld has the label %g, which is not one of %lld "
                          "classes",
                          o->name, (long long)i, n == 1 ? y[0] : (double)label, (long long)classes);
        else
            count[label]++;
    }
    for (int64_t c = 0; s >= 0 && c < classes; c++)
        weight[c] = count[c] > 0 ? (double)d->rows / ((double)classes * count[c]) : 1;
    keel_free(y);
    keel_free(count);
    keel_scratch_free(&scratch);
    return s;
}
