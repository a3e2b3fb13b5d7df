/* tf.data's bucket_by_sequence_length: rows of similar length become one batch, so that little is
 * padded. A bucket that is full is a batch; what is left at the end of the data comes shortest
 * first. */
#include "data/collect.h"
#include "data/stage.h"
#include "tensor/shape.h"
#include <stddef.h>
#include <string.h>

enum { BUCKETS_MAX = 64 };

typedef struct bucket_args {
    char *field;
    keel_reals bucket_boundaries, bucket_batch_sizes;
    bool drop_remainder;
} bucket_args;

/* The field whose first dim is the length: that named, or the first that has an open dim. */
static int field_of(const bucket_args *a, const keel_data_spec *spec)
{
    for (int i = 0; i < spec->n_field; i++) {
        const keel_shape *s = &spec->field[i].shape;
        if (a->field ? !strcmp(spec->field[i].path, a->field) && s->rank > 0
                     : s->rank > 0 && s->dim[0] == KEEL_DIM_OPEN)
            return i;
    }
    return -1;
}

static keel_status check_list(const char *name, const keel_reals *list, bool ascending)
{
    for (int i = 0; i < list->count; i++) {
        const double v = list->at[i];
        if (!(v >= 1 && v <= 1e9) || v != (double)(int64_t)v)
            return keel_fail(KEEL_EARG, "%s %d is %g; it must be a whole number from 1 on", name, i,
                             v);
        if (ascending && i && v <= list->at[i - 1])
            return keel_fail(KEEL_EARG, "%s must ascend, but %g follows %g", name, v,
                             list->at[i - 1]);
    }
    return KEEL_OK;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const bucket_args *a = s->args;
    const int n = a->bucket_boundaries.count;
    if (spec->batched)
        return keel_fail(KEEL_EUNSUP, "its elements are batches: unbatch them first");
    if (n > BUCKETS_MAX - 1)
        return keel_fail(KEEL_EARG, "at most %d bucket_boundaries", BUCKETS_MAX - 1);
    if (a->bucket_batch_sizes.count != n + 1)
        return keel_fail(KEEL_EARG,
                         "%d bucket_boundaries make %d buckets, but there are %d "
                         "bucket_batch_sizes",
                         n, n + 1, a->bucket_batch_sizes.count);
    KEEL_TRY(check_list("bucket_boundaries", &a->bucket_boundaries, true));
    KEEL_TRY(check_list("bucket_batch_sizes", &a->bucket_batch_sizes, false));
    if (field_of(a, spec) < 0)
        return keel_fail(KEEL_EARG, "%s%s%s",
                         a->field ? "there is no field '"
                                  : "no field has rows "
                                    "that differ in "
                                    "length",
                         a->field ? a->field : "", a->field ? "' with a first dim" : "");
    spec->batched = true;
    spec->rows = spec->yields = -1;
    spec->max_rows = 1;
    for (int i = 0; i <= n; i++)
        if ((int64_t)a->bucket_batch_sizes.at[i] > spec->max_rows)
            spec->max_rows = (int64_t)a->bucket_batch_sizes.at[i];
    return KEEL_OK;
}

static int64_t holds(const keel_applied *s)
{
    const bucket_args *a = s->args;
    double sum = 0;
    for (int i = 0; i < (int)a->bucket_batch_sizes.count; i++) sum += a->bucket_batch_sizes.at[i];
    return sum < 1e15 ? (int64_t)sum : (int64_t)1e15;
}

typedef struct bucket_iter {
    keel_collect of[BUCKETS_MAX];
    bool ended;
} bucket_iter;

static keel_status begin(keel_iter *it)
{
    ((bucket_iter *)it->own)->ended = false;
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    bucket_iter *w = it->own;
    const bucket_args *a = it->applied->args;
    const int field = field_of(a, it->spec), n = a->bucket_boundaries.count;
    while (!w->ended) {
        keel_element *e;
        const keel_status s = keel_iter_next(it->parent[0], &e);
        if (s < 0) return s;
        w->ended = s == KEEL_END;
        if (w->ended) break;
        int k = 0; /* a length of a boundary belongs behind it, as in tf.data */
        while (k < n && (double)e->field[field].shape.dim[0] >= a->bucket_boundaries.at[k]) k++;
        KEEL_TRY(keel_collect_add(&w->of[k], e));
        if (w->of[k].n >= (int64_t)a->bucket_batch_sizes.at[k])
            return keel_collect_batch(&w->of[k], it, out);
    }
    for (int k = 0; k <= n; k++) {
        if (!w->of[k].n) continue;
        if (!a->drop_remainder) return keel_collect_batch(&w->of[k], it, out);
        keel_collect_clear(&w->of[k]);
    }
    return KEEL_END;
}

static void end(keel_iter *it)
{
    bucket_iter *w = it->own;
    for (int k = 0; k < BUCKETS_MAX; k++) keel_collect_free(&w->of[k]);
}

#define T bucket_args
static const keel_field fields[] = {
    KEEL_REALS(T, bucket_boundaries, "lengths at which the next bucket begins, ascending"),
    KEEL_REALS(T, bucket_batch_sizes, "rows of a batch of each bucket, one more than boundaries"),
    KEEL_STRING(T, field, "null",
                "the field whose first dim is the length; null: the first with rows that differ"),
    KEEL_BOOL(T, drop_remainder, "false", "leave out what does not fill a batch at the end"),
    { .key = NULL },
};

const keel_stage keel_stage_bucket_by_sequence_length = {
    .type = { .name = "bucket_by_sequence_length",
              .module = "keel.data",
              .help = "Batches of rows of similar length.",
              .args_size = sizeof(bucket_args),
              .fields = fields },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(bucket_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .holds = holds,
};
