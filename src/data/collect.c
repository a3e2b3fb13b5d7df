/* See collect.h. */
#include "data/collect.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

keel_status keel_collect_add(keel_collect *c, keel_element *e)
{
    if (c->n == c->room) {
        const int64_t room = c->room ? 2 * c->room : 16;
        keel_element **at = keel_grow(c->at, (size_t)room, sizeof(keel_element *));
        if (!at) {
            keel_element_release(e);
            return KEEL_ENOMEM;
        }
        c->at = at;
        c->room = room;
    }
    c->at[c->n++] = e;
    return KEEL_OK;
}

void keel_collect_clear(keel_collect *c)
{
    while (c->n) keel_element_release(c->at[--c->n]);
}

void keel_collect_free(keel_collect *c)
{
    keel_collect_clear(c);
    keel_free(c->at);
    *c = (keel_collect){ 0 };
}

/* The shape of field i of the batch, where a row is `given`, with the largest of each open dim. */
static keel_status shape_of(const keel_collect *c, const keel_shape *given, int i, const char *path,
                            keel_shape *out)
{
    KEEL_TRY(keel_batch_shape(out, given, c->n, path));
    for (int d = 0; d < given->rank; d++) {
        const bool open = given->dim[d] == KEEL_DIM_OPEN;
        int64_t most = open ? 0 : given->dim[d];
        for (int64_t k = 0; k < c->n; k++) {
            const int64_t dim = c->at[k]->field[i].shape.dim[d];
            if (!open && dim > most)
                return keel_fail(KEEL_ESHAPE, "'%s' of a row has %lld in dim %d, more than %lld",
                                 path, (long long)dim, d, (long long)most);
            if (dim > most) most = dim;
        }
        out->dim[d + 1] = most;
    }
    return KEEL_OK;
}

static void fill(char *to, size_t n_bytes, const void *value, size_t each)
{
    if (!n_bytes) return;
    if (!value) {
        memset(to, 0, n_bytes);
        return;
    }
    memcpy(to, value, each);
    for (size_t done = each; done < n_bytes; done *= 2) /* what is there is copied behind itself */
        memcpy(to + done, to, done < n_bytes - done ? done : n_bytes - done);
}

/* Copy a row into its padded place, line by line. */
static void put(char *to, const keel_shape *all, const char *from, const keel_shape *row,
                size_t each)
{
    if (!row->rank) {
        memcpy(to, from, each);
        return;
    }
    const int64_t line = row->dim[row->rank - 1], step = all->dim[all->rank - 1];
    int64_t lines = 1;
    for (int d = 0; d < row->rank - 1; d++) lines *= row->dim[d];
    for (int64_t n = 0; n < lines; n++) {
        int64_t rest = n, at = 0, size = 1;
        for (int d = row->rank - 2; d >= 0; d--) { /* all has the number of rows first */
            at += rest % row->dim[d] * size;
            rest /= row->dim[d];
            size *= all->dim[d + 1];
        }
        if (line)
            memcpy(to + (size_t)(at * step) * each, from + (size_t)(n * line) * each,
                   (size_t)line * each);
    }
}

/* Whether no row of field i leaves a part of its place, of so many bytes, to the padding. */
static bool all_full(const keel_collect *c, const keel_data_spec *spec, int i, size_t n_bytes)
{
    bool full = true;
    for (int64_t k = 0; k < c->n && full; k++)
        full = keel_element_bytes(c->at[k], spec, i) == n_bytes;
    return full;
}

static void put_rows(const keel_collect *c, const keel_data_spec *spec, int i, const void *value,
                     keel_element *e)
{
    const size_t each = keel_dtype_size(spec->field[i].dtype);
    const size_t n_bytes = keel_element_bytes(e, spec, i);
    const size_t row = c->n ? n_bytes / (size_t)c->n : 0;
    const bool full = all_full(c, spec, i, row);
    char *to = e->field[i].data;
    if (!full) fill(to, n_bytes, value, each);
    for (int64_t k = 0; k < c->n; k++, to += row)
        if (!full)
            put(to, &e->field[i].shape, c->at[k]->field[i].data, &c->at[k]->field[i].shape, each);
        else if (row)
            memcpy(to, c->at[k]->field[i].data, row);
}

keel_status keel_collect_padded(keel_collect *c, keel_iter *it, const keel_shape *row_shape,
                                const void *const *value, keel_element **out)
{
    const keel_data_spec *spec = it->spec;
    keel_shape shape[KEEL_FIELDS_MAX];
    keel_element *e;
    for (int i = 0; i < spec->n_field; i++)
        KEEL_TRY(shape_of(c, &row_shape[i], i, spec->field[i].path, &shape[i]));
    KEEL_TRY(keel_element_create(&e, it->run->account, spec, shape));
    for (int i = 0; i < spec->n_field; i++) put_rows(c, spec, i, value ? value[i] : NULL, e);
    if (c->n) e->place = c->at[0]->place;
    KEEL_TRY(keel_element_own_texts(&e, spec)); /* which are in the rows, and these are let go */
    keel_collect_clear(c);
    *out = e;
    return KEEL_OK;
}

keel_status keel_collect_batch(keel_collect *c, keel_iter *it, keel_element **out)
{
    keel_shape shape[KEEL_FIELDS_MAX];
    for (int i = 0; i < it->spec->n_field; i++) shape[i] = it->spec->field[i].shape;
    return keel_collect_padded(c, it, shape, NULL, out);
}
