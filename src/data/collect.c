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

/* The shape of field i of the batch. KEEL_ESHAPE: rows differ where the spec says that they do not.
 */
static keel_status shape_of(const keel_collect *c, const keel_data_spec *spec, int i,
                            keel_shape *out)
{
    const keel_shape *given = &spec->field[i].shape;
    KEEL_TRY(keel_batch_shape(out, given, c->n, spec->field[i].path));
    for (int d = 0; d < given->rank; d++) {
        int64_t most = given->dim[d] == KEEL_DIM_OPEN ? 0 : given->dim[d];
        for (int64_t k = 0; k < c->n; k++) {
            const int64_t dim = c->at[k]->field[i].shape.dim[d];
            if (given->dim[d] == KEEL_DIM_OPEN && dim > most) most = dim;
        }
        out->dim[d + 1] = most;
    }
    return KEEL_OK;
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

keel_status keel_collect_batch(keel_collect *c, keel_iter *it, keel_element **out)
{
    const keel_data_spec *spec = it->spec;
    keel_shape shape[KEEL_FIELDS_MAX];
    keel_element *e, *copy;
    const void *data[KEEL_FIELDS_MAX];
    for (int i = 0; i < spec->n_field; i++) KEEL_TRY(shape_of(c, spec, i, &shape[i]));
    KEEL_TRY(keel_element_create(&e, it->run->account, spec, shape));
    bool texts = false;
    for (int i = 0; i < spec->n_field; i++) {
        const size_t each = keel_dtype_size(spec->field[i].dtype);
        const size_t row = c->n ? keel_element_bytes(e, spec, i) / (size_t)c->n : 0;
        texts |= spec->field[i].dtype == KEEL_STRING;
        for (int64_t k = 0; k < c->n; k++)
            put((char *)e->field[i].data + (size_t)k * row, &shape[i], c->at[k]->field[i].data,
                &c->at[k]->field[i].shape, each);
        data[i] = e->field[i].data;
    }
    if (c->n) e->place = c->at[0]->place;
    if (texts) { /* which are in the rows, and these are let go */
        const keel_status s = keel_element_copy(&copy, it->run->account, spec, data, shape);
        keel_element_release(e);
        if (s < 0) return s;
        if (c->n) copy->place = c->at[0]->place;
        e = copy;
    }
    keel_collect_clear(c);
    *out = e;
    return KEEL_OK;
}
