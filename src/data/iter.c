/* Three kinds of iterators: over rows by index, which the pool reads ahead; over a source that is a
 * stream; and those of stages. */
#include "data/iter.h"
#include "base/memory.h"
#include "data/pool.h"
#include "data/stage.h"
#include "data/trail.h"
#include "data/watchdog.h"
#include "data/window.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

struct keel_iter_kind {
    keel_status (*begin)(keel_iter *it);
    keel_status (*next)(keel_iter *it, keel_element **out);
    void (*pass)(keel_iter *it);
    void (*end)(keel_iter *it);
};

/* ---- rows by index --------------------------------------------------------------------------- */

/* Read an element: row `at` of d, or all rows of the batch that `batch` makes of rows of d. */
static keel_status read_rows(keel_element *e, const keel_dataset *d, const keel_applied *batch,
                             keel_position at, keel_scratch *scratch)
{
    const keel_data_spec *spec = &d->origin->spec;
    keel_dtype want[KEEL_FIELDS_MAX];
    int64_t count[KEEL_FIELDS_MAX];
    keel_row row = { .want = want, .count = count };
    const int64_t rows = batch ? e->field[0].shape.dim[0] : 1;
    for (int i = 0; i < spec->n_field; i++) {
        want[i] = spec->field[i].dtype;
        count[i] = keel_shape_count(&e->field[i].shape) / (rows ? rows : 1);
    }
    for (int64_t k = 0; k < rows; k++) {
        for (int i = 0; i < spec->n_field; i++)
            row.at[i] =
                (char *)e->field[i].data + (size_t)(k * count[i]) * keel_dtype_size(want[i]);
        const keel_position place = batch ? batch->stage->batch_row(batch, at, k) : at;
        KEEL_TRY(keel_dataset_read(d, place, &row, scratch));
    }
    return KEEL_OK;
}

/* The shape of an element: the longest of its rows, with their number first if it is a batch. */
static keel_status shape_at(const keel_dataset *d, int i, const keel_applied *batch,
                            keel_position at, int64_t rows, keel_shape *out)
{
    keel_shape s = d->origin->spec.field[i].shape;
    if (keel_shape_is_open(&s)) {
        int64_t longest = 0;
        for (int64_t k = 0; k < rows; k++) {
            const keel_position place = batch ? batch->stage->batch_row(batch, at, k) : at;
            const int64_t n = keel_dataset_length(d, i, place);
            if (n > longest) longest = n;
        }
        s = keel_shape_closed(&s, longest);
    }
    if (batch) return keel_batch_shape(out, &s, rows, d->origin->spec.field[i].path);
    *out = s;
    return KEEL_OK;
}

keel_status keel_element_read(keel_element **out, const keel_dataset *d, keel_position at,
                              keel_account *a, keel_scratch *scratch)
{
    const keel_data_spec *spec = &d->origin->spec;
    keel_shape shape[KEEL_FIELDS_MAX];
    keel_element *e;
    const keel_spot place = { .from = d, .at = at };
    const keel_applied *batch = keel_stage_of_batch(d, &at);
    int64_t rows = 1;
    if (batch) {
        d = batch->parent[0];
        rows = batch->stage->batch_rows(batch, at);
    }
    for (int i = 0; i < spec->n_field; i++) KEEL_TRY(shape_at(d, i, batch, at, rows, &shape[i]));
    KEEL_TRY(keel_element_create(&e, a, spec, shape));
    const keel_status s = read_rows(e, d, batch, at, scratch);
    if (s < 0) {
        keel_element_release(e);
        return s;
    }
    e->place = place;
    *out = e;
    return KEEL_OK;
}

keel_status keel_element_row(keel_element **out, const keel_element *batch, int64_t row,
                             const keel_iter *it)
{
    const void *data[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    for (int i = 0; i < it->spec->n_field; i++) {
        shape[i] = keel_row_shape(&batch->field[i].shape);
        data[i] =
            (const char *)batch->field[i].data +
            (size_t)(row * keel_shape_count(&shape[i])) * keel_dtype_size(it->spec->field[i].dtype);
    }
    KEEL_TRY(keel_element_copy(out, it->run->account, it->spec, data, shape));
    (*out)->place = batch->place;
    const keel_dataset *from = batch->place.from;
    if (from && !from->origin->applied) (*out)->place.at.index += row; /* a yield of a stream */
    return KEEL_OK;
}

typedef struct walk {
    keel_window *window; /* NULL: rows are only copied, which is faster than handing them over */
    int64_t next;        /* to be read ahead */
    keel_scratch scratch;
} walk;

static keel_status supply_index(keel_iter *it, keel_position *at, keel_element **in)
{
    walk *w = it->own;
    (void)in;
    if (w->next >= it->dataset->rows) return KEEL_END;
    *at = it->at;
    at->index = w->next++;
    return KEEL_OK;
}

static keel_status make_row(keel_iter *it, keel_position at, keel_element *in, keel_element **out,
                            keel_scratch *scratch)
{
    (void)in;
    const keel_status s = keel_element_read(out, it->dataset, at, it->run->account, scratch);
    if (s >= 0) return s;
    return keel_fail_within(s, "row %lld of %s", (long long)at.index,
                            keel_dataset_name(it->dataset));
}

static keel_status begin_walk(keel_iter *it)
{
    walk *w = it->own;
    w->next = 0;
    w->scratch = keel_run_scratch(it->run);
    if (it->dataset->origin->source->in_memory) return KEEL_OK;
    return keel_window_create(&w->window, it, supply_index, make_row, false);
}

static keel_status next_walk(keel_iter *it, keel_element **out)
{
    walk *w = it->own;
    keel_position at;
    if (w->window) return keel_window_next(w->window, out);
    keel_status s = supply_index(it, &at, NULL);
    if (s == KEEL_OK && (s = make_row(it, at, NULL, out, &w->scratch)) < 0)
        it->run->place = (keel_spot){ .from = it->dataset, .at = at };
    return s;
}

static void pass_walk(keel_iter *it)
{
    const walk *w = it->own;
    if (w->window) keel_window_pass(w->window);
}

static void end_walk(keel_iter *it)
{
    walk *w = it->own;
    keel_window_destroy(w->window);
    w->window = NULL;
    keel_scratch_free(&w->scratch);
}

static const keel_iter_kind walks = { begin_walk, next_walk, pass_walk, end_walk };

/* ---- a source that is a stream --------------------------------------------------------------- */

typedef struct source_own {
    char *field[KEEL_FIELDS_MAX]; /* of a yield of max_rows rows */
    int64_t n_bytes;              /* of all, taken from the account */
    int64_t rows;                 /* of this pass so far */
    bool given;                   /* a row, in any pass */
} source_own;

/* The buffers of a yield. */
static keel_status reserve_yield(keel_iter *it)
{
    source_own *w = it->own;
    const keel_data_spec *spec = it->spec;
    size_t each[KEEL_FIELDS_MAX], sum = 0, n;
    if (spec->shaped || w->n_bytes) return KEEL_OK;
    for (int i = 0; i < spec->n_field; i++) {
        each[i] =
            (size_t)keel_shape_count(&spec->field[i].shape) * keel_dtype_size(spec->field[i].dtype);
        if (!keel_mul(each[i], (size_t)spec->max_rows, &n) ||
            __builtin_add_overflow(sum, n, &sum) || sum > INT64_MAX)
            return keel_fail(KEEL_EARG, "%s: %lld rows in one yield are more than memory can hold",
                             keel_dataset_name(it->dataset), (long long)spec->max_rows);
    }
    if (!keel_account_take(it->run->account, (int64_t)sum)) return KEEL_ENOMEM;
    w->n_bytes = (int64_t)sum;
    for (int i = 0; i < spec->n_field; i++)
        if (!(w->field[i] = keel_aligned_calloc((size_t)spec->max_rows, each[i])))
            return KEEL_ENOMEM;
    return KEEL_OK;
}

static keel_status begin_source(keel_iter *it)
{
    source_own *w = it->own;
    const keel_data_origin *o = it->dataset->origin;
    w->rows = 0;
    if (it->spec->one_shot && w->given)
        return keel_fail(KEEL_EDATA,
                         "%s was read already, and has no reset to begin again with: give it one",
                         keel_dataset_name(it->dataset));
    if (it->at.pass > UINT32_MAX)
        return keel_fail(KEEL_EARG, "%s: pass %llu is more than can be counted",
                         keel_dataset_name(it->dataset), (unsigned long long)it->at.pass);
    KEEL_TRY(reserve_yield(it));
    return o->source->begin(o->state, (uint32_t)it->at.pass, NULL);
}

/* A callback may say anything of the shapes of a row: what follows relies on them. */
static keel_status check_given(const keel_dataset *d, const void *const *data,
                               const keel_shape *shape)
{
    const keel_data_spec *spec = &d->origin->spec;
    for (int i = 0; i < spec->n_field; i++) {
        const keel_shape *want = &spec->field[i].shape;
        bool fits = data[i] && shape[i].rank == want->rank;
        for (int k = 0; fits && k < want->rank; k++)
            fits = shape[i].dim[k] >= 0 &&
                   (want->dim[k] == KEEL_DIM_OPEN || want->dim[k] == shape[i].dim[k]);
        if (!data[i])
            return keel_fail(KEEL_ECALLBACK, "%s: '%s' of a row is NULL", keel_dataset_name(d),
                             spec->field[i].path);
        if (fits) continue;
        char have[96] = "of another rank", need[96];
        if (shape[i].rank >= 0 && shape[i].rank <= KEEL_RANK_MAX) keel_shape_text(have, &shape[i]);
        keel_shape_text(need, want);
        return keel_fail(KEEL_ESHAPE, "%s: a row of '%s' is %s, not %s", keel_dataset_name(d),
                         spec->field[i].path, have, need);
    }
    return KEEL_OK;
}

static keel_status next_source(keel_iter *it, keel_element **out)
{
    source_own *w = it->own;
    const keel_data_origin *o = it->dataset->origin;
    const keel_data_spec *spec = it->spec;
    const void *data[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    int64_t rows = 0;
    for (int i = 0; i < spec->n_field; i++) {
        shape[i] = spec->field[i].shape;
        data[i] = w->field[i];
    }
    keel_probe *p = it->run->probe;
    const keel_probe_span span = keel_probe_begin(p, KEEL_WORK_YIELD);
    const keel_probe_mark m = keel_probe_rows(p, o, 0);
    const keel_status s = spec->shaped ? o->source->next_shaped(o->state, data, shape, &rows)
                                       : o->source->next(o->state, (void *const *)w->field, &rows);
    keel_probe_leave_rows(p, m, rows);
    keel_probe_end(p, &span);
    if (s < 0) it->run->place = (keel_spot){ it->dataset, { .index = w->rows }, o, w->rows };
    if (s != KEEL_OK) return s;
    w->given = true;
    KEEL_TRY(check_given(it->dataset, data, shape));
    for (int i = 0; i < spec->n_field && !spec->by_row; i++)
        KEEL_TRY(keel_batch_shape(&shape[i], &shape[i], rows, spec->field[i].path));
    KEEL_TRY(keel_element_copy(out, it->run->account, spec, data, shape));
    (*out)->place = (keel_spot){ .from = it->dataset, .at = { .index = w->rows } };
    w->rows += rows;
    return KEEL_OK;
}

static void end_source(keel_iter *it)
{
    source_own *w = it->own;
    const keel_data_origin *o = it->dataset->origin;
    if (o->source->rest) o->source->rest(o->state);
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) {
        keel_free(w->field[i]);
        w->field[i] = NULL;
    }
    keel_account_give(it->run->account, w->n_bytes);
    w->n_bytes = 0;
}

static void pass_source(keel_iter *it)
{
    (void)it; /* what it failed to give is not given again */
}

static const keel_iter_kind sources = { begin_source, next_source, pass_source, end_source };

/* ---- stages ---------------------------------------------------------------------------------- */

static keel_status begin_stage(keel_iter *it)
{
    if (it->applied->stage->begin) return it->applied->stage->begin(it);
    for (int i = 0; i < it->n_parent; i++) KEEL_TRY(keel_iter_begin(it->parent[i], it->at.pass));
    return KEEL_OK;
}

static keel_status next_stage(keel_iter *it, keel_element **out)
{
    return it->applied->stage->next(it, out);
}

static void pass_stage(keel_iter *it)
{
    if (it->applied->stage->pass) {
        it->applied->stage->pass(it);
        return;
    }
    for (int i = 0; i < it->n_parent; i++) keel_iter_pass(it->parent[i]);
}

static void end_stage(keel_iter *it)
{
    if (it->applied->stage->end) it->applied->stage->end(it);
}

static const keel_iter_kind stages = { begin_stage, next_stage, pass_stage, end_stage };

/* ---- a run ----------------------------------------------------------------------------------- */

keel_status keel_run_begin(keel_run *run, const keel_dataset *d, int n_threads)
{
    run->relief = (keel_relief){ keel_run_let_go, run };
    KEEL_TRY(keel_pool_create(&run->pool, n_threads, false, run->work, run->account));
    const keel_scratch *own = keel_pool_scratch(run->pool);
    run->probe = own->probe;
    run->trail = own->trail;
    return keel_ledger_create(&run->ledger, d);
}

void keel_run_end(keel_run *run)
{
    keel_ledger_free(&run->ledger);
    keel_pool_destroy(run->pool);
    run->pool = NULL;
}

keel_status keel_run_watch(const keel_run *run, keel_watchdog *w)
{
    int n;
    keel_trail *trail = keel_pool_trails(run->pool, &n);
    return keel_watchdog_add(w, trail, n);
}

keel_scratch keel_run_scratch(const keel_run *run)
{
    return (keel_scratch){ .account = run->account, .probe = run->probe, .trail = run->trail };
}

keel_status keel_run_next(keel_iter *it, keel_element **out)
{
    keel_run *run = it->run;
    keel_relief *before = keel_account_relief(&run->relief);
    const keel_probe_span span = keel_probe_begin(run->probe, 0);
    const keel_status s = keel_iter_next(it, out);
    keel_probe_end(run->probe, &span);
    keel_account_relief(before);
    return s;
}

/* ---- any ------------------------------------------------------------------------------------- */

static const keel_iter_kind *kind_of(const keel_dataset *d)
{
    if (d->origin->applied) return d->origin->applied->by_index ? &walks : &stages;
    return d->origin->source->read ? &walks : &sources;
}

static size_t own_size(const keel_dataset *d, const keel_iter_kind *kind)
{
    if (kind == &walks) return sizeof(walk);
    return kind == &sources ? sizeof(source_own) : d->origin->applied->stage->iter_size + 1;
}

static keel_status create(keel_iter **out, const keel_dataset *d, keel_run *run, uint16_t before,
                          bool left_early, const keel_data_origin *shown)
{
    const keel_iter_kind *kind = kind_of(d);
    const keel_applied *s = d->origin->applied;
    const int n = kind == &stages ? s->n_parent : 0;
    keel_status r = KEEL_ENOMEM;
    keel_iter *it = keel_calloc(1, sizeof *it + (size_t)n * sizeof *it->parent);
    if (!it) return KEEL_ENOMEM;
    it->dataset = d;
    it->applied = s;
    it->spec = &d->origin->spec;
    it->run = run;
    it->kind = kind;
    it->work = 2 + run->n_iter++ % (KEEL_WORK_KINDS - 2);
    it->at = (keel_position){ .seed = run->seed, .stages = before };
    it->shown = shown;
    it->left_early = left_early;
    it->exact = left_early && kind == &stages && !it->spec->by_pass;
    left_early |= kind == &stages && s->stage->leaves_early && s->stage->leaves_early(s);
    if (!(it->own = keel_calloc(1, own_size(d, kind)))) goto fail;
    for (; it->n_parent < n; it->n_parent++) {
        const keel_position there = keel_stage_into(s, it->n_parent, &it->at);
        r = create(&it->parent[it->n_parent], s->parent[it->n_parent], run, there.stages,
                   left_early, shown);
        if (r < 0) goto fail;
    }
    *out = it;
    return KEEL_OK;
fail:
    keel_iter_destroy(it);
    return r;
}

keel_status keel_iter_create(keel_iter **out, const keel_dataset *d, keel_run *run, uint16_t before)
{
    return create(out, d, run, before, run->leaves_early, NULL);
}

/* Where the function that makes it has a state from pass to pass, what it makes may share that. */
keel_status keel_iter_create_within(keel_iter **out, const keel_dataset *d, const keel_iter *outer,
                                    uint16_t before)
{
    const keel_applied *s = outer->applied;
    const bool sequential = s->stage->is_sequential && s->stage->is_sequential(s);
    return create(out, d, outer->run, before, outer->left_early || sequential,
                  outer->shown ? outer->shown : outer->dataset->origin);
}

void keel_iter_destroy(keel_iter *it)
{
    if (!it) return;
    if (it->open) it->kind->end(it);
    for (int i = 0; i < it->n_parent; i++) keel_iter_destroy(it->parent[i]);
    keel_free(it->own);
    keel_free(it);
}

keel_status keel_iter_begin(keel_iter *it, uint64_t pass)
{
    if (it->open) it->kind->end(it);
    it->failed = false;
    it->open = true; /* also where `begin` fails: `end` frees what it has made */
    it->at.pass = pass;
    it->at.index = 0;
    return it->kind->begin(it);
}

keel_status keel_iter_next(keel_iter *it, keel_element **out)
{
    keel_trail *t = it->run->trail;
    *out = NULL;
    /* rows by index and of sources are counted where they are read */
    const bool counts =
        it->kind != &sources && (it->kind != &walks || it->dataset->origin->source->in_memory);
    const keel_data_origin *here = it->dataset->origin;
    keel_probe *p = it->run->probe;
    const keel_data_origin *shown = keel_trail_show(t, it->shown);
    const keel_trail_mark before = keel_trail_enter(t, here, it->at.index);
    const keel_probe_mark m =
        counts ? keel_probe_enter(p, here, KEEL_PART_ALL) : keel_probe_resume(p, here);
    const keel_status s = it->kind->next(it, out);
    keel_probe_leave(p, m);
    keel_trail_show(t, shown);
    keel_trail_leave(t, before);
    it->failed = s < 0;
    if (s == KEEL_OK)
        it->at.index++;
    else
        *out = NULL; /* it may be an element that the stage has let go */
    return s;
}

keel_status keel_iter_seek(keel_iter *it, int64_t index)
{
    if (it->kind == &walks) {
        ((walk *)it->own)->next = it->at.index = index;
        return index > it->dataset->rows ? KEEL_END : KEEL_OK;
    }
    while (it->at.index < index) {
        keel_element *e;
        const keel_status s = keel_run_next(it, &e);
        if (s != KEEL_OK) return s;
        keel_element_release(e);
    }
    return KEEL_OK;
}

void keel_iter_reseed(keel_iter *it, uint64_t seed)
{
    it->at.seed = seed;
    for (int i = 0; i < it->n_parent; i++) keel_iter_reseed(it->parent[i], seed);
}

void keel_iter_pass(keel_iter *it)
{
    const bool failed = it->failed;
    it->failed = false;
    if (failed) it->kind->pass(it);
}
