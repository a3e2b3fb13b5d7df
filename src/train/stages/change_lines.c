/* Stages one behind the other that change the same images pixel by pixel, or flip or crop them: a
 * row goes through all of them some lines at a time, see graph/lines.h. */
#include "data/trail.h"
#include "data/work.h"
#include "graph/lines.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/stages/change_impl.h"
#include <string.h>

enum { STAGES_MAX = 8 };

typedef struct stage_of {
    const keel_applied *s;
    const keel_change *c;
    keel_position at, there;        /* of the row; in the parent */
    const keel_data_origin *origin; /* NULL: of the last stage, which the caller works on */
    keel_change_rows *rows;
    keel_step_facts facts;
    keel_trail_mark trail;
    keel_probe_mark probe;
} stage_of;

typedef struct chain {
    int n;
    stage_of of[STAGES_MAX]; /* the last stage first */
    int field, n_op;
    keel_probe *probe;
    keel_probe_mark mark;
    bool marked;
} chain;

/* ---- which stages ---------------------------------------------------------------------------- */

/* Each field stands where it stood. */
static int changed_field(const keel_change *c)
{
    const keel_change_plan *p = &c->plan;
    const int field = p->call[0].in[0];
    if (p->n_call != 1 || p->model->n_input != 1 || p->model->n_output != 1) return -1;
    if (p->n_field != c->parent->n_field) return -1;
    for (int i = 0; i < p->n_field; i++)
        if (p->field[i].from != (i == field ? -1 : i)) return -1;
    return field;
}

static void shapes_of(const keel_change *c, keel_shape *row)
{
    for (int i = 0; i < c->parent->n_field; i++) row[i] = c->parent->field[i].shape;
}

void keel_change_find_lines(keel_change *c)
{
    keel_shape row[KEEL_FIELDS_MAX];
    keel_change_rows *r;
    c->lines = changed_field(c);
    if (c->lines < 0) return;
    shapes_of(c, row);
    const keel_shape *own = &row[c->lines];
    const bool image = own->rank == 3 && !keel_shape_is_open(own);
    if (image && keel_change_rows_for(c, 0, row, &r) >= 0) {
        c->n_op = keel_rows_lines(r->rows);
        keel_compiled_rows_give(c->compiled, r);
    }
    if (c->n_op == 0) c->lines = -1;
}

int64_t keel_change_lines_bytes(const keel_change *c)
{
    enum { ALIGNED = 64 };
    if (c->lines < 0) return 0;
    const keel_data_field *f = &c->parent->field[c->lines];
    return keel_lines_block_bytes(&(keel_spec){ f->dtype, f->shape }) + ALIGNED;
}

static void add_stage(chain *x, const keel_applied *s, const keel_data_origin *o, keel_position at)
{
    const keel_change *c = s->made;
    x->of[x->n++] =
        (stage_of){ .s = s, .c = c, .at = at, .there = keel_stage_into(s, 0, &at), .origin = o };
    x->n_op += c->n_op;
}

/* This stage and those before it, as far as they follow one another; stages that only choose rows
 * may stand between them. */
static void find_stages(chain *x, const keel_applied *s, keel_position at)
{
    add_stage(x, s, NULL, at);
    x->field = x->of[0].c->lines;
    for (;;) {
        const stage_of *before = &x->of[x->n - 1];
        keel_position there = before->there;
        const keel_data_origin *o = keel_stage_of_row(before->s->parent[0], &there);
        if (!o || o->applied->stage->read != keel_change_read || x->n == STAGES_MAX) return;
        const keel_change *c = o->applied->made;
        if (c->lines != x->field || x->n_op + c->n_op >= KEEL_LINES_OPS_MAX) return;
        add_stage(x, o->applied, o, there);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static keel_status take_programs(chain *x)
{
    keel_shape row[KEEL_FIELDS_MAX];
    for (int i = x->n - 1; i >= 0; i--) {
        stage_of *o = &x->of[i];
        shapes_of(o->c, row);
        KEEL_TRY(keel_change_rows_for(o->c, 0, row, &o->rows));
        o->facts = keel_change_facts(o->s, &o->at);
    }
    return KEEL_OK;
}

/* Does the reader want what comes out, or bytes of it as float32? Only several ops are worth it. */
static bool is_worth(const chain *x, const keel_row *row, bool *widen)
{
    const keel_data_field *f = &x->of[0].s->spec->field[x->field];
    const keel_dtype wanted = row->want[x->field];
    *widen = f->dtype == KEEL_UINT8 && wanted == KEEL_FLOAT32;
    return (wanted == f->dtype || *widen) && x->n_op + *widen > 1 &&
           row->count[x->field] == keel_shape_count(&f->shape);
}

/* The time of a block goes to the stage that works on it. */
static void works(void *context, int program)
{
    chain *x = context;
    if (x->marked) keel_probe_leave(x->probe, x->mark);
    x->marked = program > 0; /* the last stage is what the thread works on already */
    if (x->marked) x->mark = keel_probe_resume(x->probe, x->of[program].origin);
}

static void enter(chain *x, const keel_scratch *scratch)
{
    for (int i = 1; i < x->n; i++) {
        stage_of *o = &x->of[i];
        o->trail = keel_trail_enter(scratch->trail, o->origin, o->at.index);
        o->probe = keel_probe_enter(scratch->probe, o->origin, KEEL_PART_ALL);
    }
}

static void leave(chain *x, const keel_scratch *scratch)
{
    for (int i = x->n - 1; i > 0; i--) {
        keel_probe_leave(scratch->probe, x->of[i].probe);
        keel_trail_leave(scratch->trail, x->of[i].trail);
    }
}

/* The row before all of them, all other fields straight to where they are wanted. *image: where its
 * image lies. */
static keel_status read_first(const chain *x, const keel_row *row, keel_scratch *scratch,
                              const void **image)
{
    const stage_of *o = &x->of[x->n - 1];
    const keel_dataset *d = o->s->parent[0];
    const keel_spec *in = &o->rows->in[0];
    keel_dtype want[KEEL_FIELDS_MAX];
    int64_t count[KEEL_FIELDS_MAX];
    keel_row first = *row;
    for (int i = 0; i < o->c->parent->n_field; i++) {
        want[i] = row->want[i];
        count[i] = row->count[i];
    }
    want[x->field] = in->dtype;
    count[x->field] = keel_shape_count(&in->shape);
    first.want = want;
    first.count = count;
    first.at[x->field] = NULL;
    *image = NULL;
    if (in->dtype == o->c->parent->field[x->field].dtype)
        *image = keel_dataset_row_in_memory(d, o->there, x->field);
    if (!*image) {
        KEEL_TRY(keel_shape_check(&in->shape, keel_dtype_size(in->dtype)));
        const size_t bytes = (size_t)count[x->field] * keel_dtype_size(in->dtype);
        *image = first.at[x->field] = keel_scratch_reserve(scratch, 0, bytes + 1);
        if (!*image) return KEEL_ENOMEM;
    }
    keel_scratch *inner = keel_scratch_inner(scratch);
    return inner ? keel_dataset_read(d, o->there, &first, inner) : KEEL_ENOMEM;
}

static keel_status read_row(chain *x, const keel_row *row, keel_scratch *scratch, bool widen)
{
    const void *image;
    keel_lines l;
    KEEL_TRY(take_programs(x));
    keel_lines_begin(&l, &x->of[x->n - 1].rows->in[0]);
    for (int i = x->n - 1; i >= 0; i--) keel_lines_add(&l, x->of[i].rows->rows, &x->of[i].facts, i);
    if (widen) keel_lines_widen(&l, 0);
    enter(x, scratch);
    const keel_status s = read_first(x, row, scratch, &image);
    leave(x, scratch);
    if (s < 0) return s;
    void *memory = keel_scratch_reserve(scratch, 1, (size_t)keel_lines_bytes(&l));
    if (!memory) return KEEL_ENOMEM;
    const bool measures = scratch->probe && scratch->probe->measures;
    x->probe = scratch->probe;
    keel_lines_run(&l, image, row->at[x->field], memory, measures ? works : NULL, x);
    if (x->marked) keel_probe_leave(x->probe, x->mark);
    return keel_call_status_take();
}

keel_status keel_change_read_lines(const keel_applied *s, keel_position at, const keel_row *row,
                                   keel_scratch *scratch, bool *done)
{
    const keel_change *c = s->made;
    chain x = { 0 };
    bool widen;
    *done = false;
    if (c->lines < 0 || !row->at[c->lines]) return KEEL_OK;
    find_stages(&x, s, at);
    if (!is_worth(&x, row, &widen)) return KEEL_OK;
    *done = true;
    const keel_status r = read_row(&x, row, scratch, widen);
    for (int i = 0; i < x.n; i++)
        if (x.of[i].rows) keel_compiled_rows_give(x.of[i].c->compiled, x.of[i].rows);
    return r;
}
