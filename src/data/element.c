/* See element.h. */
#include "data/element.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

enum { ALIGNED = 64 };

static bool add_up(size_t *sum, size_t n)
{
    const size_t padded = (n + ALIGNED - 1) / ALIGNED * ALIGNED;
    return padded >= n && !__builtin_add_overflow(*sum, padded, sum);
}

/* `extra` bytes follow the fields. Only the head is set. */
static keel_status create(keel_element **out, keel_account *a, const keel_data_spec *spec,
                          const keel_shape *shape, size_t extra)
{
    const size_t head = sizeof(keel_element) + (size_t)spec->n_field * sizeof(out[0]->field[0]);
    size_t size[KEEL_FIELDS_MAX], sum = 0;
    bool fits = add_up(&sum, head) && add_up(&sum, extra);
    for (int i = 0; i < spec->n_field; i++) {
        const size_t each = keel_dtype_size(spec->field[i].dtype);
        KEEL_TRY(keel_shape_check(&shape[i], each));
        size[i] = (size_t)keel_shape_count(&shape[i]) * each;
        fits = fits && add_up(&sum, size[i]);
    }
    if (!fits || sum > INT64_MAX)
        return keel_fail(KEEL_ESHAPE, "a row is larger than the address space");
    keel_element *e = keel_account_block(a, sum);
    if (!e) return KEEL_ENOMEM;
    size_t at = 0;
    add_up(&at, head);
    memset(e, 0, at);
    e->references = 1;
    e->n_field = spec->n_field;
    e->account = a;
    e->n_bytes = sum;
    for (int i = 0; i < spec->n_field; i++) {
        e->field[i].data = (char *)e + at;
        e->field[i].shape = shape[i];
        add_up(&at, size[i]);
    }
    *out = e;
    return KEEL_OK;
}

keel_status keel_element_create(keel_element **out, keel_account *a, const keel_data_spec *spec,
                                const keel_shape *shape)
{
    return create(out, a, spec, shape, 0);
}

keel_status keel_element_create_zeroed(keel_element **out, keel_account *a,
                                       const keel_data_spec *spec, const keel_shape *shape)
{
    KEEL_TRY(create(out, a, spec, shape, 0));
    for (int i = 0; i < spec->n_field; i++) {
        const size_t n = keel_element_bytes(*out, spec, i);
        if (n) memset((*out)->field[i].data, 0, n);
    }
    return KEEL_OK;
}

keel_status keel_element_copy(keel_element **out, keel_account *a, const keel_data_spec *spec,
                              const void *const *data, const keel_shape *shape)
{
    keel_element *e = NULL;
    size_t texts = 0;
    for (int i = 0; i < spec->n_field; i++) {
        const keel_string *text = data[i];
        if (spec->field[i].dtype != KEEL_STRING) continue;
        for (int64_t k = 0; k < keel_shape_count(&shape[i]); k++)
            if (__builtin_add_overflow(texts, (size_t)text[k].n_bytes, &texts))
                return keel_fail(KEEL_ESHAPE, "a text is larger than the address space");
    }
    KEEL_TRY(create(&e, a, spec, shape, texts));
    char *to = (char *)e + e->n_bytes - texts;
    for (int i = 0; i < spec->n_field; i++) {
        const size_t n = keel_element_bytes(e, spec, i);
        if (n) memcpy(e->field[i].data, data[i], n);
        if (spec->field[i].dtype != KEEL_STRING) continue;
        keel_string *text = e->field[i].data;
        for (int64_t k = 0; k < keel_shape_count(&shape[i]); k++) {
            if (text[k].n_bytes) memcpy(to, text[k].data, (size_t)text[k].n_bytes);
            text[k].data = to;
            to += text[k].n_bytes;
        }
    }
    *out = e;
    return KEEL_OK;
}

keel_status keel_element_own_texts(keel_element **e, const keel_data_spec *spec)
{
    keel_element *from = *e;
    const void *data[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    bool texts = false;
    for (int i = 0; i < spec->n_field; i++) {
        texts |= spec->field[i].dtype == KEEL_STRING;
        data[i] = from->field[i].data;
        shape[i] = from->field[i].shape;
    }
    if (!texts) return KEEL_OK;
    *e = NULL;
    const keel_status s = keel_element_copy(e, from->account, spec, data, shape);
    if (s >= 0) (*e)->place = from->place;
    keel_element_release(from);
    return s;
}

keel_element *keel_element_share(keel_element *e)
{
    atomic_fetch_add(&e->references, 1);
    return e;
}

void keel_element_release(keel_element *e)
{
    if (!e || atomic_fetch_sub(&e->references, 1) > 1) return;
    keel_account_free(e->account, e, e->n_bytes);
}

keel_status keel_batch_shape(keel_shape *out, const keel_shape *row, int64_t rows, const char *path)
{
    keel_shape all = { .rank = row->rank + 1, .dim = { rows } };
    if (all.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "a batch of '%s' has more than %d dims", path, KEEL_RANK_MAX);
    memcpy(all.dim + 1, row->dim, (size_t)row->rank * sizeof *row->dim);
    *out = all;
    return KEEL_OK;
}

keel_shape keel_row_shape(const keel_shape *batch)
{
    return keel_shape_of(batch->rank - 1, batch->dim + 1);
}

int64_t keel_element_rows(const keel_element *e, const keel_data_spec *spec)
{
    return spec->batched ? e->field[0].shape.dim[0] : 1;
}

size_t keel_element_bytes(const keel_element *e, const keel_data_spec *spec, int i)
{
    return (size_t)keel_shape_count(&e->field[i].shape) * keel_dtype_size(spec->field[i].dtype);
}

int64_t keel_element_size(const keel_data_spec *spec, int64_t rows)
{
    size_t sum = 0;
    bool fits = add_up(&sum, sizeof(keel_element) +
                                 (size_t)spec->n_field * sizeof(struct keel_element_field));
    fits = fits && add_up(&sum, 0);
    for (int i = 0; i < spec->n_field; i++) {
        const keel_shape row = keel_shape_closed(&spec->field[i].shape, 1);
        size_t n;
        fits = fits && keel_mul((size_t)keel_shape_count(&row), rows ? (size_t)rows : 1, &n) &&
               keel_mul(n, keel_dtype_size(spec->field[i].dtype), &n) && add_up(&sum, n);
    }
    return fits && sum <= INT64_MAX ? (int64_t)sum : INT64_MAX;
}

int64_t keel_dataset_element_size(const keel_dataset *d)
{
    const keel_data_spec *spec = &d->origin->spec;
    const bool batches = spec->batched || (!d->origin->source->read && !spec->by_row);
    return keel_element_size(spec, batches ? spec->max_rows : 0);
}
