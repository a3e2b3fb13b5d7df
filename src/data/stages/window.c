/* Windows over rows: window k has the rows k * shift, k * shift + stride, ..., as one row whose
 * fields have the size of the window first. It is tf.data's window with each window made a batch,
 * and keras.utils.timeseries_dataset_from_array without its targets. */
#include "base/memory.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct window_args {
    int64_t size, shift, stride;
} window_args;

static int64_t shift_of(const window_args *a)
{
    return a->shift == KEEL_INT_NULL ? a->size : a->shift;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const window_args *a = s->args;
    int64_t reach;
    if (!s->by_index || spec->batched || spec->endless)
        return keel_fail(KEEL_EUNSUP, "windows need rows that are read by number and have an end: "
                                      "put it before filters, batches and endless repeats");
    if (!keel_mul_i64(a->size - 1, a->stride, &reach))
        return keel_fail(KEEL_EARG,
                         "a window of %lld rows with stride %lld is more than can be "
                         "counted",
                         (long long)a->size, (long long)a->stride);
    for (int i = 0; i < spec->n_field; i++) {
        keel_shape *shape = &spec->field[i].shape;
        if (keel_shape_is_open(shape))
            return keel_fail(KEEL_EUNSUP, "rows of '%s' differ in length", spec->field[i].path);
        if (shape->rank == KEEL_RANK_MAX)
            return keel_fail(KEEL_ESHAPE, "'%s' has %d dims already", spec->field[i].path,
                             shape->rank);
        for (int d = shape->rank++; d > 0; d--) shape->dim[d] = shape->dim[d - 1];
        shape->dim[0] = a->size;
    }
    spec->rows = spec->rows > reach ? (spec->rows - reach - 1) / shift_of(a) + 1 : 0;
    return KEEL_OK;
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    const window_args *a = s->args;
    keel_scratch *inner = keel_scratch_inner(scratch);
    int64_t count[KEEL_FIELDS_MAX];
    keel_row part = { .want = row->want, .count = count };
    if (!inner) return KEEL_ENOMEM;
    for (int i = 0; i < s->spec->n_field; i++)
        count[i] = keel_shape_count(&s->parent[0]->origin->spec.field[i].shape);
    for (int64_t k = 0; k < a->size; k++) {
        keel_position there = keel_stage_into(s, 0, &at);
        there.index = at.index * shift_of(a) + k * a->stride;
        for (int i = 0; i < s->spec->n_field; i++)
            part.at[i] = row->at[i] ? (char *)row->at[i] +
                                          (size_t)(k * count[i]) * keel_dtype_size(row->want[i])
                                    : NULL;
        KEEL_TRY(keel_dataset_read(s->parent[0], there, &part, inner));
    }
    return KEEL_OK;
}

#define T window_args
static const keel_field fields[] = {
    KEEL_INT(T, size, NULL, 1, 1e9, "rows of a window"),
    KEEL_INT(T, shift, "null", 1, 1e12, "rows from one window to the next; null: size"),
    KEEL_INT(T, stride, "1", 1, 1e9, "rows from one row of a window to the next"),
    { .key = NULL },
};

const keel_stage keel_stage_window = {
    .type = { .name = "window",
              .module = "keel.data",
              .help = "Windows of rows; short ones at the end are left out.",
              .args_size = sizeof(window_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .read = read,
};
