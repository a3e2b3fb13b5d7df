/* Elements of a stream that a model changes, rows or batches, made ahead by several threads. */
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/stages/change_impl.h"
#include <string.h>

typedef struct making {
    const keel_applied *s;
    const keel_change *c;
    const keel_data_spec *spec; /* of the result */
    const keel_element *e;
    int64_t n; /* rows of it */
    keel_change_rows *rows[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX]; /* of the result */
    void *to[KEEL_FIELDS_MAX];
} making;

static keel_status find_shapes(making *x)
{
    const keel_change_plan *p = &x->c->plan;
    keel_shape row[KEEL_FIELDS_MAX];
    for (int i = 0; i < x->e->n_field; i++)
        row[i] = x->spec->batched ? keel_row_shape(&x->e->field[i].shape) : x->e->field[i].shape;
    for (int k = 0; k < p->n_call; k++) KEEL_TRY(keel_change_rows_for(x->c, k, row, &x->rows[k]));
    for (int i = 0; i < p->n_field; i++) {
        const keel_change_field *f = &p->field[i];
        if (f->from >= 0) {
            x->shape[i] = x->e->field[f->from].shape;
            continue;
        }
        x->shape[i] = keel_rows_spec(x->rows[f->call]->rows, f->output)->shape;
        if (x->spec->batched)
            KEEL_TRY(keel_batch_shape(&x->shape[i], &x->shape[i], x->n, p->as[i].path));
    }
    return KEEL_OK;
}

/* Row r of an end of a call: where it is if the types agree, else in `room`. */
static void *row_at(void *data, keel_dtype has, const keel_spec *takes, int64_t r, void *room)
{
    const int64_t count = keel_shape_count(&takes->shape);
    return has == takes->dtype ? (char *)data + (size_t)(r * count) * keel_dtype_size(has) : room;
}

static void convert(void *to, keel_dtype to_type, const void *from, keel_dtype from_type,
                    int64_t r_to, int64_t r_from, int64_t count)
{
    keel_convert((char *)to + (size_t)(r_to * count) * keel_dtype_size(to_type), to_type,
                 (const char *)from + (size_t)(r_from * count) * keel_dtype_size(from_type),
                 from_type, count);
}

static keel_status run_row(const making *x, int k, int64_t r, const keel_step_facts *facts,
                           char *room, const size_t *at, keel_scratch *inner)
{
    const keel_change_plan *p = &x->c->plan;
    const int n_in = p->model->n_input;
    keel_change_ends ends;
    int field[KEEL_OUTPUTS_MAX];
    for (int o = 0; o < p->model->n_output; o++) field[o] = -1;
    for (int i = 0; i < p->n_field; i++)
        if (p->field[i].from < 0 && p->field[i].call == k) field[p->field[i].output] = i;
    for (int j = 0; j < n_in; j++) {
        const int from = p->call[k].in[j];
        const keel_spec *takes = &x->rows[k]->in[j];
        const keel_dtype has = x->c->parent->field[from].dtype;
        void *data = x->e->field[from].data;
        ends.in[j] = row_at(data, has, takes, r, room + at[j]);
        if (has != takes->dtype)
            convert(room + at[j], takes->dtype, data, has, 0, r, keel_shape_count(&takes->shape));
    }
    for (int o = 0; o < p->model->n_output; o++) {
        const keel_spec *gives = keel_rows_spec(x->rows[k]->rows, o);
        void *own = room + at[n_in + o];
        ends.out[o] = field[o] < 0
                          ? own
                          : row_at(x->to[field[o]], x->spec->field[field[o]].dtype, gives, r, own);
    }
    KEEL_TRY(keel_change_run(x->c, x->rows[k], facts, r, &ends, inner));
    for (int o = 0; o < p->model->n_output; o++) {
        const keel_spec *gives = keel_rows_spec(x->rows[k]->rows, o);
        if (field[o] < 0 || ends.out[o] != room + at[n_in + o]) continue;
        convert(x->to[field[o]], x->spec->field[field[o]].dtype, ends.out[o], gives->dtype, r, 0,
                keel_shape_count(&gives->shape));
    }
    return KEEL_OK;
}

static keel_status run_calls(const making *x, const keel_position *at, keel_scratch *scratch)
{
    const keel_change_plan *p = &x->c->plan;
    const keel_step_facts facts = keel_change_facts(x->s, at);
    keel_scratch *inner = keel_scratch_inner(scratch);
    size_t offset[KEEL_FIELDS_MAX + KEEL_OUTPUTS_MAX];
    if (!inner) return KEEL_ENOMEM;
    for (int i = 0; i < p->n_field; i++) {
        const int from = p->field[i].from;
        const size_t n = from < 0 ? 0 : keel_element_bytes(x->e, x->c->parent, from);
        if (n) memcpy(x->to[i], x->e->field[from].data, n);
    }
    for (int k = 0; k < p->n_call; k++) {
        char *room =
            keel_scratch_reserve(scratch, 0, keel_change_room(x->c, x->rows[k], offset) + 1);
        if (!room) return KEEL_ENOMEM;
        for (int64_t r = 0; r < x->n; r++) KEEL_TRY(run_row(x, k, r, &facts, room, offset, inner));
    }
    return KEEL_OK;
}

static bool has_texts(const keel_data_spec *spec)
{
    bool any = false;
    for (int i = 0; i < spec->n_field; i++) any = any || spec->field[i].dtype == KEEL_STRING;
    return any;
}

/* Texts of the element belong to it, so where some are passed on all is copied once more. */
static keel_status make_with_texts(making *x, keel_account *a, const keel_position *at,
                                   keel_element **out, keel_scratch *scratch)
{
    size_t offset[KEEL_FIELDS_MAX], sum = 0;
    for (int i = 0; i < x->spec->n_field; i++) {
        const size_t each = keel_dtype_size(x->spec->field[i].dtype);
        KEEL_TRY(keel_shape_check(&x->shape[i], each));
        offset[i] = sum;
        if (__builtin_add_overflow(
                sum, ((size_t)keel_shape_count(&x->shape[i]) * each + 63) / 64 * 64, &sum))
            return keel_fail(KEEL_ESHAPE, "a row is larger than the address space");
    }
    char *bytes = keel_scratch_reserve(scratch, 1, sum + 1);
    if (!bytes) return KEEL_ENOMEM;
    for (int i = 0; i < x->spec->n_field; i++) x->to[i] = bytes + offset[i];
    KEEL_TRY(run_calls(x, at, scratch));
    return keel_element_copy(out, a, x->spec, (const void *const *)x->to, x->shape);
}

static keel_status make_element(making *x, keel_account *a, const keel_position *at,
                                keel_element **out, keel_scratch *scratch)
{
    keel_element *made;
    KEEL_TRY(find_shapes(x));
    if (has_texts(x->spec)) return make_with_texts(x, a, at, out, scratch);
    KEEL_TRY(keel_element_create(&made, a, x->spec, x->shape));
    for (int i = 0; i < x->spec->n_field; i++) x->to[i] = made->field[i].data;
    const keel_status s = run_calls(x, at, scratch);
    if (s < 0)
        keel_element_release(made);
    else
        *out = made;
    return s;
}

keel_status keel_change_make(const keel_applied *s, keel_account *a, keel_position at,
                             const keel_element *e, keel_element **out, keel_scratch *scratch)
{
    const keel_change *c = s->made;
    making x = { .s = s, .c = c, .spec = s->spec, .e = e, .n = keel_element_rows(e, s->spec) };
    const keel_status r = make_element(&x, a, &at, out, scratch);
    for (int k = 0; k < c->plan.n_call; k++)
        if (x.rows[k]) keel_compiled_rows_give(c->compiled, x.rows[k]);
    return r;
}
