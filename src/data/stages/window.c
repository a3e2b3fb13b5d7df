/* Windows over rows: window k has the rows k * shift, k * shift + stride, ..., as one row whose
 * fields have the size of the window first. It is tf.data's window with each window made a batch.
 * With target_offset its targets and weights are those of one row, k * shift + target_offset, as in
 * keras.utils.timeseries_dataset_from_array(data, data[target_offset:], ...). */
#include "base/memory.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct window_args {
    int64_t size, shift, stride, target_offset;
} window_args;

static int64_t shift_of(const window_args *a)
{
    return a->shift == KEEL_INT_NULL ? a->size : a->shift;
}

/* False: it is the field of one row. */
static bool is_window(const window_args *a, const keel_data_field *f)
{
    return a->target_offset == KEEL_INT_NULL || f->role == KEEL_ROLE_INPUT;
}

static keel_status widen(const window_args *a, keel_data_field *f)
{
    keel_shape *shape = &f->shape;
    if (!is_window(a, f)) return KEEL_OK;
    if (keel_shape_is_open(shape))
        return keel_fail(KEEL_EUNSUP, "rows of '%s' differ in length", f->path);
    if (shape->rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "'%s' has %d dims already", f->path, shape->rank);
    for (int d = shape->rank++; d > 0; d--) shape->dim[d] = shape->dim[d - 1];
    shape->dim[0] = a->size;
    return KEEL_OK;
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
    for (int i = 0; i < spec->n_field; i++) KEEL_TRY(widen(a, &spec->field[i]));
    if (a->target_offset != KEEL_INT_NULL && a->target_offset > reach) reach = a->target_offset;
    spec->rows = spec->rows > reach ? (spec->rows - reach - 1) / shift_of(a) + 1 : 0;
    return KEEL_OK;
}

/* Row `index` of the parent: its fields that belong to a window as element k of theirs, or the
 * others. */
static keel_status read_row(const keel_applied *s, keel_position at, int64_t index,
                            const keel_row *row, bool windows, int64_t k, keel_scratch *inner)
{
    const keel_data_spec *own = &s->parent[0]->origin->spec;
    int64_t count[KEEL_FIELDS_MAX];
    keel_row part = { .want = row->want, .count = count };
    keel_position there = keel_stage_into(s, 0, &at);
    there.index = index;
    for (int i = 0; i < own->n_field; i++) {
        count[i] = keel_shape_count(&own->field[i].shape);
        if (row->at[i] && is_window(s->args, &own->field[i]) == windows)
            part.at[i] =
                (char *)row->at[i] + (size_t)(k * count[i]) * keel_dtype_size(row->want[i]);
    }
    return keel_dataset_read(s->parent[0], there, &part, inner);
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    const window_args *a = s->args;
    const int64_t first = at.index * shift_of(a);
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!inner) return KEEL_ENOMEM;
    for (int64_t k = 0; k < a->size; k++)
        KEEL_TRY(read_row(s, at, first + k * a->stride, row, true, k, inner));
    if (a->target_offset == KEEL_INT_NULL) return KEEL_OK;
    return read_row(s, at, first + a->target_offset, row, false, 0, inner);
}

#define T window_args
static const keel_field fields[] = {
    KEEL_INT(T, size, NULL, 1, 1e9, "rows of a window"),
    KEEL_INT(T, shift, "null", 1, 1e12, "rows from one window to the next; null: size"),
    KEEL_INT(T, stride, "1", 1, 1e9, "rows from one row of a window to the next"),
    KEEL_INT(T, target_offset, "null", 0, 1e12,
             "targets are those of one row, so many behind the first of the window: size, of the "
             "row behind it (stride 1); null: of all its rows"),
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
