/* Rows by number that a model changes: what it reads comes from the parent into scratch or, where
 * it can be changed in place, straight to where it is wanted; all other fields pass untouched. */
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/stages/change_impl.h"
#include <string.h>

typedef struct reading {
    const keel_applied *s;
    const keel_change *c;
    const keel_row *row;
    keel_position there;                     /* in the parent */
    keel_shape shape[KEEL_FIELDS_MAX];       /* of the parent's row */
    keel_change_rows *rows[KEEL_FIELDS_MAX]; /* of each call that runs; NULL: it need not */
    bool read[KEEL_FIELDS_MAX], in_place[KEEL_FIELDS_MAX]; /* fields of the parent */
    int out[KEEL_FIELDS_MAX][KEEL_OUTPUTS_MAX]; /* the field that an output is; -1: none */
    keel_dtype want[KEEL_FIELDS_MAX];
    int64_t count[KEEL_FIELDS_MAX];
    void *at[KEEL_FIELDS_MAX];             /* of the parent's fields; NULL: not copied */
    const void *there_at[KEEL_FIELDS_MAX]; /* of those that a call reads where they lie */
} reading;

static size_t padded(int64_t count, keel_dtype t)
{
    return ((size_t)count * keel_dtype_size(t) + 63) / 64 * 64;
}

static void find_shapes(reading *x)
{
    const keel_dataset *d = x->s->parent[0];
    for (int i = 0; i < x->c->parent->n_field; i++) {
        x->shape[i] = x->c->parent->field[i].shape;
        if (keel_shape_is_open(&x->shape[i]))
            x->shape[i] = keel_shape_closed(&x->shape[i], keel_dataset_length(d, i, x->there));
    }
}

/* Which calls have an output that is wanted, and what they read. */
static keel_status find_calls(reading *x)
{
    const keel_change_plan *p = &x->c->plan;
    for (int k = 0; k < p->n_call; k++)
        for (int o = 0; o < p->model->n_output; o++) x->out[k][o] = -1;
    for (int i = 0; i < p->n_field; i++) {
        const keel_change_field *f = &p->field[i];
        if (f->from >= 0 || !x->row->at[i]) continue;
        x->out[f->call][f->output] = i;
        if (x->rows[f->call]) continue;
        KEEL_TRY(keel_change_rows_for(x->c, f->call, x->shape, &x->rows[f->call]));
        for (int j = 0; j < p->model->n_input; j++) x->read[p->call[f->call].in[j]] = true;
    }
    return KEEL_OK;
}

/* How many calls and fields of the result use a field of the parent. */
static int users(const reading *x, int field)
{
    const keel_change_plan *p = &x->c->plan;
    int n = 0;
    for (int k = 0; k < p->n_call; k++)
        for (int j = 0; x->rows[k] && j < p->model->n_input; j++) n += p->call[k].in[j] == field;
    for (int i = 0; i < p->n_field; i++) n += p->field[i].from == field && x->row->at[i];
    return n;
}

/* The field of the result in which the input of a call may be changed; -1: it may not. */
static int place_for(const reading *x, int k)
{
    const keel_change_plan *p = &x->c->plan;
    const int out = x->out[k][0];
    if (p->model->n_input != 1 || p->model->n_output != 1 || !keel_rows_in_place(x->rows[k]->rows))
        return -1;
    const keel_dtype gives = keel_rows_spec(x->rows[k]->rows, 0)->dtype;
    const bool same = x->row->want[out] == gives && x->rows[k]->in[0].dtype == gives &&
                      x->row->count[out] == keel_shape_count(&x->rows[k]->in[0].shape);
    return same && users(x, p->call[k].in[0]) == 1 ? out : -1;
}

static bool is_passed_on(const reading *x, int field)
{
    const keel_change_plan *p = &x->c->plan;
    bool any = false;
    for (int i = 0; i < p->n_field; i++) any |= p->field[i].from == field && x->row->at[i];
    return any;
}

/* A field that only calls read, in the type in which it lies in memory, need not be copied. */
static void find_in_memory(reading *x)
{
    const keel_data_spec *spec = x->c->parent;
    for (int i = 0; i < spec->n_field; i++)
        if (x->read[i] && x->want[i] == spec->field[i].dtype && !is_passed_on(x, i))
            x->there_at[i] = keel_dataset_row_in_memory(x->s->parent[0], x->there, i);
}

/* Where the parent's row goes. */
static keel_status place_inputs(reading *x, keel_scratch *scratch)
{
    const keel_change_plan *p = &x->c->plan;
    const keel_data_spec *spec = x->c->parent;
    size_t offset[KEEL_FIELDS_MAX], sum = 0;
    for (int i = 0; i < spec->n_field; i++) x->want[i] = spec->field[i].dtype;
    for (int i = 0; i < p->n_field; i++) {
        const int from = p->field[i].from;
        if (from < 0 || x->read[from]) continue;
        x->at[from] = x->row->at[i];
        x->want[from] = x->row->want[i];
        x->count[from] = x->row->count[i];
    }
    for (int k = 0; k < p->n_call; k++)
        for (int j = 0; x->rows[k] && j < p->model->n_input; j++)
            x->want[p->call[k].in[j]] = x->rows[k]->in[j].dtype;
    find_in_memory(x);
    for (int k = 0; k < p->n_call; k++) {
        if (!x->rows[k]) continue;
        const int place = x->there_at[p->call[k].in[0]] ? -1 : place_for(x, k);
        for (int j = 0; j < p->model->n_input; j++) {
            const int field = p->call[k].in[j];
            x->in_place[field] = place >= 0;
            if (place >= 0) x->at[field] = x->row->at[place];
        }
    }
    for (int i = 0; i < spec->n_field; i++) {
        if (!x->read[i] || x->there_at[i]) continue;
        KEEL_TRY(keel_shape_check(&x->shape[i], keel_dtype_size(x->want[i])));
        x->count[i] = keel_shape_count(&x->shape[i]);
        offset[i] = sum;
        if (!x->in_place[i] && __builtin_add_overflow(sum, padded(x->count[i], x->want[i]), &sum))
            return keel_fail(KEEL_ESHAPE, "a row is larger than the address space");
    }
    char *bytes = keel_scratch_reserve(scratch, 0, sum + 1);
    if (!bytes) return KEEL_ENOMEM;
    for (int i = 0; i < spec->n_field; i++)
        if (x->read[i] && !x->there_at[i] && !x->in_place[i]) x->at[i] = bytes + offset[i];
    return KEEL_OK;
}

/* A value as the reader wants it; a shorter one is filled with zeros. */
static keel_status give(const reading *x, int i, const void *from, keel_dtype type, int64_t n)
{
    const keel_row *row = x->row;
    keel_data_field field = x->s->spec->field[i];
    field.dtype = type;
    if (from != row->at[i]) KEEL_TRY(keel_field_write(row->at[i], row->want[i], from, &field, n));
    const size_t each = keel_dtype_size(row->want[i]);
    if (n < row->count[i])
        memset((char *)row->at[i] + (size_t)n * each, 0, (size_t)(row->count[i] - n) * each);
    return KEEL_OK;
}

static keel_status run_call(const reading *x, int k, const keel_step_facts *facts,
                            keel_scratch *scratch)
{
    const keel_change_plan *p = &x->c->plan;
    const keel_rows *rows = x->rows[k]->rows;
    keel_change_ends ends;
    size_t sum = 0;
    for (int o = 0; o < p->model->n_output; o++) {
        const keel_spec *spec = keel_rows_spec(rows, o);
        sum += padded(keel_shape_count(&spec->shape), spec->dtype);
    }
    char *bytes = keel_scratch_reserve(scratch, 1, sum + 1);
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!bytes || !inner) return KEEL_ENOMEM;
    for (int j = 0; j < p->model->n_input; j++) {
        const int field = p->call[k].in[j];
        ends.in[j] = x->there_at[field] ? x->there_at[field] : x->at[field];
    }
    for (int o = 0; o < p->model->n_output; o++) {
        const keel_spec *spec = keel_rows_spec(rows, o);
        const int i = x->out[k][o];
        ends.out[o] = i >= 0 && x->row->want[i] == spec->dtype ? x->row->at[i] : bytes;
        bytes += padded(keel_shape_count(&spec->shape), spec->dtype);
    }
    KEEL_TRY(keel_change_run(x->c, x->rows[k], facts, 0, &ends, inner));
    for (int o = 0; o < p->model->n_output; o++) {
        const keel_spec *spec = keel_rows_spec(rows, o);
        const int i = x->out[k][o];
        if (i >= 0) KEEL_TRY(give(x, i, ends.out[o], spec->dtype, keel_shape_count(&spec->shape)));
    }
    return KEEL_OK;
}

static keel_status read_row(reading *x, const keel_position *at, keel_scratch *scratch)
{
    const keel_change_plan *p = &x->c->plan;
    find_shapes(x);
    KEEL_TRY(find_calls(x));
    KEEL_TRY(place_inputs(x, scratch));
    keel_row row = { .want = x->want, .count = x->count };
    memcpy(row.at, x->at, sizeof row.at);
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!inner) return KEEL_ENOMEM;
    KEEL_TRY(keel_dataset_read(x->s->parent[0], x->there, &row, inner));
    for (int i = 0; i < p->n_field; i++) {
        const int from = p->field[i].from;
        if (from >= 0 && x->read[from] && x->row->at[i])
            KEEL_TRY(give(x, i, x->at[from], x->want[from], x->count[from]));
    }
    const keel_step_facts facts = keel_change_facts(x->s, at);
    for (int k = 0; k < p->n_call; k++)
        if (x->rows[k]) KEEL_TRY(run_call(x, k, &facts, scratch));
    return KEEL_OK;
}

keel_status keel_change_read(const keel_applied *s, keel_position at, const keel_row *row,
                             keel_scratch *scratch)
{
    const keel_change *c = s->made;
    bool done = false;
    KEEL_TRY(keel_change_read_lines(s, at, row, scratch, &done));
    if (done) return KEEL_OK;
    reading x = { .s = s, .c = c, .row = row, .there = keel_stage_into(s, 0, &at) };
    const keel_status r = read_row(&x, &at, scratch);
    for (int k = 0; k < c->plan.n_call; k++)
        if (x.rows[k]) keel_compiled_rows_give(c->compiled, x.rows[k]);
    return r;
}

int64_t keel_change_length(const keel_applied *s, int field, keel_position at)
{
    const keel_change *c = s->made;
    const keel_change_field *f = &c->plan.field[field];
    reading x = { .s = s, .c = c, .there = keel_stage_into(s, 0, &at) };
    keel_change_rows *rows;
    if (f->from >= 0) return keel_dataset_length(s->parent[0], f->from, x.there);
    find_shapes(&x);
    if (keel_change_rows_for(c, f->call, x.shape, &rows) < 0) return 0; /* reading fails, too */
    const keel_shape *out = &keel_rows_spec(rows->rows, f->output)->shape;
    const int64_t n = out->rank ? out->dim[0] : 1;
    keel_compiled_rows_give(c->compiled, rows);
    return n;
}
