/* The spec of rows that a model changes, and one row through it; see change.h. */
#include "train/stages/change_impl.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

int keel_change_find(const keel_data_spec *spec, const char *path)
{
    for (int i = 0; i < spec->n_field; i++)
        if (!strcmp(spec->field[i].path, path)) return i;
    return -1;
}

keel_status keel_change_no_field(const keel_data_spec *spec, const char *path)
{
    keel_text names = { 0 };
    for (int i = 0; i < spec->n_field; i++)
        keel_text_add(&names, "%s'%s'", i ? ", " : "", spec->field[i].path);
    const keel_status s = keel_fail(KEEL_EARG, "rows have no field '%.60s'; they have %s", path,
                                    names.data ? names.data : "");
    keel_text_free(&names);
    return s;
}

/* The type in which a call gets a field: bytes, integers and texts as they are. */
static keel_dtype given_as(const keel_change *c, keel_dtype t)
{
    return keel_dtype_is_real(t) ? c->plan.model->dtype : t;
}

static keel_status check_type(const keel_change *c, int input, const keel_data_field *f)
{
    const keel_model *m = c->plan.model;
    const keel_dtype takes = keel_model_spec(m, m->input[input])->dtype;
    if ((takes == KEEL_STRING) == (f->dtype == KEEL_STRING)) return KEEL_OK;
    return keel_fail(KEEL_EARG, "field '%s' has %s, and '%s' takes %s", f->path,
                     f->dtype == KEEL_STRING ? "texts" : "numbers", keel_model_input_name(m, input),
                     takes == KEEL_STRING ? "texts" : "numbers");
}

/* The shape that the model sees: that of the row, or for (28, 28) that of (28, 28, 1). */
static keel_status given_shape(const keel_change *c, int input, const keel_shape *row,
                               keel_shape *out)
{
    const keel_model *m = c->plan.model;
    const keel_shape *own = &keel_model_spec(m, m->input[input])->shape;
    bool good = true;
    *out = *own;
    for (int d = 0; d < row->rank || d < own->rank; d++) {
        const int64_t has = d < row->rank ? row->dim[d] : 1;
        const int64_t wants = d < own->rank ? own->dim[d] : 1;
        good = good && (has == wants || wants == KEEL_DIM_OPEN || has == KEEL_DIM_OPEN);
        if (d < own->rank) out->dim[d] = has;
    }
    if (good) return KEEL_OK;
    char have[96], want[96];
    keel_shape_text(have, row);
    keel_shape_text(want, own);
    return keel_fail(KEEL_ESHAPE, "rows have shape %s, but '%s' takes %s", have,
                     keel_model_input_name(m, input), want);
}

static keel_status given_specs(const keel_change *c, int call, const keel_shape *row,
                               keel_spec *out)
{
    for (int i = 0; i < c->plan.model->n_input; i++) {
        const int field = c->plan.call[call].in[i];
        out[i].dtype = given_as(c, c->parent->field[field].dtype);
        KEEL_TRY(given_shape(c, i, &row[field], &out[i].shape));
    }
    return KEEL_OK;
}

keel_status keel_change_rows_for(const keel_change *c, int call, const keel_shape *row,
                                 keel_change_rows **out)
{
    keel_spec in[KEEL_FIELDS_MAX];
    KEEL_TRY(given_specs(c, call, row, in));
    return keel_compiled_rows_take(c->compiled, in, out);
}

/* ---- the spec -------------------------------------------------------------------------------- */

/* Two numbers in place of open dims: where outputs differ, theirs are open. */
static keel_status try_call(const keel_change *c, int call, int64_t dim, keel_spec *out)
{
    keel_change_rows *r;
    keel_shape row[KEEL_FIELDS_MAX];
    for (int i = 0; i < c->parent->n_field; i++)
        row[i] = keel_shape_closed(&c->parent->field[i].shape, dim);
    KEEL_TRY(keel_change_rows_for(c, call, row, &r));
    for (int k = 0; k < c->plan.model->n_output; k++) out[k] = *keel_rows_spec(r->rows, k);
    keel_compiled_rows_give(c->compiled, r);
    return KEEL_OK;
}

static bool reads_open(const keel_change *c, int call)
{
    bool open = false;
    for (int i = 0; i < c->plan.model->n_input; i++)
        open = open || keel_shape_is_open(&c->parent->field[c->plan.call[call].in[i]].shape);
    return open;
}

/* The outputs of a call. Where rows differ in shape they may be moved or computed, so they are real
 * numbers. */
static keel_status outputs_of(const keel_change *c, int call, keel_spec *out)
{
    static const int64_t tried[2] = { 40320, 80640 }; /* as in model/build.c */
    keel_spec other[KEEL_OUTPUTS_MAX];
    KEEL_TRY(try_call(c, call, tried[0], out));
    if (!reads_open(c, call)) return KEEL_OK;
    KEEL_TRY(try_call(c, call, tried[1], other));
    for (int k = 0; k < c->plan.model->n_output; k++) {
        for (int d = 0; d < out[k].shape.rank; d++)
            if (out[k].shape.dim[d] != other[k].shape.dim[d]) out[k].shape.dim[d] = KEEL_DIM_OPEN;
        if (out[k].dtype == KEEL_UINT8) out[k].dtype = c->plan.model->dtype;
    }
    return KEEL_OK;
}

static keel_status make_spec(const keel_change *c, keel_data_spec *spec)
{
    keel_spec out[KEEL_OUTPUTS_MAX];
    const keel_data_spec from = *spec;
    spec->n_field = c->plan.n_field;
    for (int i = 0; i < spec->n_field; i++) spec->field[i] = c->plan.as[i];
    for (int k = 0; k < c->plan.n_call; k++) {
        for (int i = 0; i < c->plan.model->n_input; i++)
            KEEL_TRY(check_type(c, i, &from.field[c->plan.call[k].in[i]]));
        KEEL_TRY(outputs_of(c, k, out));
        for (int i = 0; i < spec->n_field; i++) {
            const keel_change_field *f = &c->plan.field[i];
            if (f->from >= 0 || f->call != k) continue;
            spec->field[i].dtype = out[f->output].dtype;
            spec->field[i].shape = out[f->output].shape;
        }
    }
    return KEEL_OK;
}

static bool is_by_chance(const keel_model *m)
{
    bool any = false;
    for (int i = 0; i < m->n_layer && !any; i++)
        any = m->layer[i].kind->by_chance || (m->layer[i].inner && is_by_chance(m->layer[i].inner));
    return any;
}

static void destroy(keel_change *c)
{
    if (!c) return;
    keel_compiled_rows_destroy(c->compiled);
    if (c->plan.owns) keel_model_destroy(c->plan.model);
    keel_free(c);
}

keel_status keel_change_infer(keel_applied *s, keel_data_spec *spec, const keel_change_plan *plan)
{
    keel_change *c = keel_calloc(1, sizeof *c);
    if (!c) {
        if (plan->owns) keel_model_destroy(plan->model);
        return KEEL_ENOMEM;
    }
    c->plan = *plan;
    c->parent = &s->parent[0]->origin->spec;
    c->random = plan->training && is_by_chance(plan->model);
    keel_status r = keel_compiled_rows_create(&c->compiled, plan->model, plan->training);
    if (r >= 0) r = make_spec(c, spec);
    if (r < 0) {
        destroy(c);
        return r;
    }
    c->row_step = spec->batched ? spec->max_rows : 1;
    if (spec->batched) s->by_index = false;
    keel_change_find_lines(c);
    s->made = c;
    return KEEL_OK;
}

void keel_change_release(keel_applied *s)
{
    destroy(s->made);
    s->made = NULL;
}

bool keel_change_is_random(const keel_applied *s)
{
    return ((const keel_change *)s->made)->random;
}

/* ---- one row --------------------------------------------------------------------------------- */

uint64_t keel_change_seed(const keel_applied *s, const keel_position *at)
{
    const keel_chance all = keel_stage_chance(s, at);
    const keel_chance own = { .seed = all.seed, .stream = all.stream };
    uint32_t word[4];
    keel_philox(word, &own, (UINT64_C(1) << 48) - 1, UINT32_MAX); /* no row is that far */
    return (uint64_t)word[0] << 32 | word[1];
}

keel_step_facts keel_change_facts(const keel_applied *s, const keel_position *at)
{
    const keel_change *c = s->made;
    return (keel_step_facts){ .seed = keel_change_seed(s, at),
                              .epoch = keel_stage_chance(s, at).epoch,
                              .first_row = (uint64_t)(at->index * c->row_step),
                              .rows = 1 };
}

keel_status keel_change_run(const keel_change *c, const keel_change_rows *r,
                            const keel_step_facts *facts, int64_t row, const keel_change_ends *ends,
                            keel_scratch *scratch)
{
    const keel_status s =
        keel_rows_run(r->rows, facts, row, ends->in, (void *const *)ends->out, scratch);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "%s", c->plan.name) : s;
}
