/* See elements.h. */
#include "data/elements.h"
#include "base/memory.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct elements {
    keel_collect rows;
    const keel_data_spec *spec; /* the dataset's */
} elements;

keel_status keel_elements_write(const keel_element *e, const keel_data_spec *spec,
                                const keel_row *row)
{
    for (int i = 0; i < spec->n_field; i++) {
        if (!row->at[i]) continue;
        const int64_t n = keel_shape_count(&e->field[i].shape);
        const size_t each = keel_dtype_size(row->want[i]);
        KEEL_TRY(keel_field_write(row->at[i], row->want[i], e->field[i].data, &spec->field[i], n));
        if (keel_shape_is_open(&spec->field[i].shape) && n < row->count[i])
            memset((char *)row->at[i] + (size_t)n * each, 0, (size_t)(row->count[i] - n) * each);
    }
    return KEEL_OK;
}

static keel_status read(const void *state, int64_t index, const keel_row *row, keel_scratch *s)
{
    const elements *all = state;
    (void)s;
    return keel_elements_write(all->rows.at[index], all->spec, row);
}

static int64_t length(const void *state, int i, int64_t index)
{
    const keel_shape *s = &((const elements *)state)->rows.at[index]->field[i].shape;
    return s->rank ? s->dim[0] : 0;
}

static void close(void *state)
{
    elements *all = state;
    keel_collect_free(&all->rows);
    keel_free(all);
}

/* Values of another type than the field's do not always fit, so no row is `in_memory` by the word
 * of source.h. */
static const keel_source fixed = { .name = "elements", .read = read, .close = close };
static const keel_source ragged = {
    .name = "elements", .read = read, .length = length, .close = close
};

keel_status keel_elements_dataset(keel_dataset **out, keel_collect *c, const keel_data_spec *spec,
                                  const char *name)
{
    keel_data_spec own = { .n_field = spec->n_field, .rows = c->n, .yields = -1 };
    memcpy(own.field, spec->field, sizeof own.field);
    own.class_names = spec->class_names;
    own.n_classes = spec->n_classes;
    elements *state = keel_calloc(1, sizeof *state);
    keel_status s = state ? keel_spec_copy_classes(&own) : KEEL_ENOMEM;
    if (s < 0) {
        if (state) keel_spec_free_classes(&own);
        keel_free(state);
        keel_collect_free(c);
        return s;
    }
    state->rows = *c;
    *c = (keel_collect){ 0 };
    KEEL_TRY(
        keel_dataset_create(out, keel_spec_is_open(spec) ? &ragged : &fixed, state, &own, name));
    state->spec = &(*out)->origin->spec;
    return KEEL_OK;
}
