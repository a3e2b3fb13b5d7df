/* Rows that differ in length: they are padded with 0 to the longest row of the global batch, or to
 * the bucket that the longest fits in. As it is the global batch, results do not depend on the
 * number of devices. Slots have room for the longest row of the data. */
#include "base/memory.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

bool keel_feed_is_open(const keel_feed *f, int i)
{
    return f->open >> i & 1;
}

/* At least 1, since ops need elements. */
int64_t keel_feed_padded(const keel_feed *f, int64_t length)
{
    if (length < 1) length = 1;
    if (!f->o.bucket_count) return length;
    for (int64_t i = 0; i < f->o.bucket_count; i++)
        if (length <= f->o.bucket[i]) return f->o.bucket[i];
    return -1;
}

keel_status keel_feed_find_longest(keel_feed *f, int i)
{
    int64_t row = 0;
    const int64_t longest = keel_dataset_longest(f->dataset, i, &row);
    if (longest < 0)
        return keel_fail(
            KEEL_EUNSUP,
            "%s: rows of '%s' differ in length and never end, so the longest cannot be "
            "found: put `repeat` behind the stage that computes the lengths",
            keel_dataset_name(f->dataset), f->spec->field[i].path);
    const int64_t room = keel_feed_padded(f, longest);
    if (room < 0)
        return keel_fail(KEEL_EDATA,
                         "%s: row %lld of '%s' has length %lld, and the largest bucket is %lld; "
                         "add one that it fits in",
                         keel_dataset_name(f->dataset), (long long)row, f->spec->field[i].path,
                         (long long)longest, (long long)f->o.bucket[f->o.bucket_count - 1]);
    f->field[i].shape = keel_shape_closed(&f->spec->field[i].shape, room);
    return keel_shape_check(&f->field[i].shape, sizeof(double));
}

keel_status keel_feed_own_lengths(const keel_feed *f, keel_slot *s)
{
    s->field = f->field;
    s->count = f->count;
    s->bytes = f->bytes;
    if (!f->open && !f->spec->shaped) return KEEL_OK;
    if (!(s->own = keel_calloc(1, sizeof *s->own))) return KEEL_ENOMEM;
    memcpy(s->own->field, f->field, sizeof f->field);
    memcpy(s->own->count, f->count, sizeof f->count);
    memcpy(s->own->bytes, f->bytes, sizeof f->bytes);
    s->field = s->own->field;
    s->count = s->own->count;
    s->bytes = s->own->bytes;
    return KEEL_OK;
}

keel_shape keel_feed_made_shape(const keel_feed *f, int i, const keel_data_field *fields)
{
    const keel_feed_made *made = &f->made[i - f->spec->n_field];
    keel_shape shape = made->shape;
    for (int d = 0; d < shape.rank; d++)
        if (shape.dim[d] == KEEL_DIM_OPEN) shape.dim[d] = fields[made->of[0]].shape.dim[d];
    return shape;
}

static void set_shape(const keel_feed *f, keel_slot *s, int i, const keel_shape *shape)
{
    s->own->field[i].shape = *shape;
    s->own->count[i] = keel_shape_count(shape);
    s->own->bytes[i] = (size_t)s->own->count[i] * keel_dtype_size(f->want[i]);
}

void keel_feed_measure_made(const keel_feed *f, keel_slot *s)
{
    for (int i = f->spec->n_field; i < f->spec->n_field + f->n_made; i++) {
        const keel_shape shape = keel_feed_made_shape(f, i, s->own->field);
        set_shape(f, s, i, &shape);
    }
}

void keel_feed_measure(const keel_feed *f, keel_slot *s)
{
    const keel_dataset *d = s->made_by ? s->made_by->parent[0] : f->dataset;
    for (int i = 0; i < f->spec->n_field; i++) {
        int64_t longest = 0;
        if (!keel_feed_is_open(f, i)) continue;
        for (int64_t k = 0; k < s->batch.rows; k++) {
            const int64_t length = keel_dataset_length(d, i, s->row[k]);
            if (length > longest) longest = length;
        }
        const keel_shape shape =
            keel_shape_closed(&f->spec->field[i].shape, keel_feed_padded(f, longest));
        set_shape(f, s, i, &shape);
    }
    keel_feed_measure_made(f, s);
}
