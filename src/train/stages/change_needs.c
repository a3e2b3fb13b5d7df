/* The buffers of stages that change rows by a model, known before the first row: those of the
 * model's program, which run while a row's own are in use. */
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/stages/change_impl.h"

size_t keel_change_room(const keel_change *c, const keel_change_rows *rows, size_t *at)
{
    const keel_model *m = c->plan.model;
    size_t sum = 0;
    for (int i = 0; i < m->n_input + m->n_output; i++) {
        const keel_spec *spec =
            i < m->n_input ? &rows->in[i] : keel_rows_spec(rows->rows, i - m->n_input);
        at[i] = sum;
        sum +=
            ((size_t)keel_shape_count(&spec->shape) * keel_dtype_size(spec->dtype) + 63) / 64 * 64;
    }
    return sum;
}

/* The shapes of the longest row. False: nobody knows them. */
static bool longest_row(const keel_applied *s, keel_shape *row)
{
    const keel_dataset *d = s->parent[0];
    const keel_data_spec *spec = &d->origin->spec;
    for (int i = 0; i < spec->n_field; i++) {
        int64_t at = 0, n = 0;
        row[i] = spec->field[i].shape;
        if (!keel_shape_is_open(&row[i])) continue;
        if (!s->by_index || (n = keel_dataset_longest(d, i, &at)) < 0) return false;
        row[i] = keel_shape_closed(&row[i], n);
    }
    return true;
}

static bool has_texts(const keel_data_spec *spec)
{
    bool any = false;
    for (int i = 0; i < spec->n_field; i++) any = any || spec->field[i].dtype == KEEL_STRING;
    return any;
}

int64_t keel_change_needs(const keel_applied *s)
{
    const keel_change *c = s->made;
    keel_shape row[KEEL_FIELDS_MAX];
    int64_t program = 0, room = 0;
    if (!longest_row(s, row)) return 0;
    for (int k = 0; k < c->plan.n_call; k++) {
        size_t at[KEEL_FIELDS_MAX + KEEL_OUTPUTS_MAX];
        keel_change_rows *rows;
        if (keel_change_rows_for(c, k, row, &rows) < 0) return 0; /* reading fails, too */
        const int64_t n = keel_rows_bytes(rows->rows);
        const int64_t ends = (int64_t)keel_change_room(c, rows, at) + 1;
        if (n > program) program = n;
        if (ends > room) room = ends;
        keel_compiled_rows_give(c->compiled, rows);
    }
    /* a row of its own and of its parent are counted */
    if (s->by_index) return program + keel_change_lines_bytes(c);
    const int64_t rows = s->spec->batched ? s->spec->max_rows : 0;
    const int64_t copy = has_texts(s->spec) ? keel_element_size(s->spec, rows) : 0;
    return copy > INT64_MAX - program - room ? INT64_MAX : program + room + copy;
}
