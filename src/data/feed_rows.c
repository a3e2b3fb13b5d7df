/* The engine for rows by index: the rows of a step are computed, threads take runs of rows of the
 * earliest unfinished step, and steps come out in order.
 *
 * An array that already has the layout and type of a batch is not copied: the batch points into it.
 */
#include "data/chunk.h"
#include "data/feed_impl.h"
#include <string.h>

enum { LOOK_AHEAD = 2, FILES_AHEAD = 8 }; /* rows */

typedef struct pass_order { /* caches the permutation of one pass */
    bool set;
    int64_t pass;
    keel_permutation permutation;
} pass_order;

/* The dataset's index of row i of a step, and its pass. */
static keel_position source_row(const keel_feed *f, const keel_plan_step *p, int64_t i,
                                pass_order *o)
{
    int64_t at = p->position + i, pass = p->pass;
    const int64_t n = f->dataset->rows;
    if (at >= n) {
        if (!p->same_pass) pass += at / n;
        at %= n;
    }
    keel_position to = { .seed = f->o.seed, .pass = (uint64_t)pass, .index = at };
    if (!f->o.shuffle) return to;
    if (!o->set || o->pass != pass) {
        const keel_chance c = { .seed = f->o.seed,
                                .epoch = (uint32_t)pass,
                                .stream = KEEL_STREAM_SHUFFLE };
        keel_permutation_init(&o->permutation, (uint64_t)n, &c);
        o->pass = pass;
        o->set = true;
    }
    to.index = (int64_t)keel_permutation_at(&o->permutation, (uint64_t)at);
    return to;
}

/* The place of row i of a slot's step, and the dataset that it is counted in. */
static const keel_dataset *row_place(const keel_feed *f, const keel_slot *s, int64_t i,
                                     pass_order *o, keel_position *at)
{
    if (!s->made_by) {
        *at = source_row(f, &s->plan, i, o);
        return f->dataset;
    }
    *at = s->made_by->stage->batch_row(s->made_by, s->element, i);
    return s->made_by->parent[0];
}

/* Of a dataset of batches, the plan counts batches: find the one of this step and its rows. */
static void open_batch(const keel_feed *f, keel_slot *s)
{
    pass_order order = { 0 };
    s->element = source_row(f, &s->plan, 0, &order);
    s->made_by = keel_stage_of_batch(f->dataset, &s->element);
    const int64_t rows = s->made_by->stage->batch_rows(s->made_by, s->element);
    const keel_position last = s->made_by->stage->batch_row(s->made_by, s->element, rows - 1);
    const keel_position first = s->made_by->stage->batch_row(s->made_by, s->element, 0);
    s->plan.rows = rows;
    s->plan.first_row *= (uint64_t)f->max_rows;
    s->plan.duplicates = last.index < first.index ? last.index + 1 : 0;
}

/* Let the batch point into arrays whose rows are consecutive and need no conversion. */
static void point_into_arrays(const keel_feed *f, keel_slot *s)
{
    keel_batch *b = &s->batch;
    const keel_plan_step *p = &s->plan;
    memcpy(b->field, s->at, (size_t)f->n_field * sizeof *b->field);
    if (!f->source->tensor || f->o.shuffle || f->dataset->order) return;
    if (f->dataset->origin->n_gone) return;
    if (p->position + p->rows > f->dataset->rows) return;
    const size_t first = (size_t)keel_dataset_index(f->dataset, p->position);
    for (int i = 0; i < f->spec->n_field; i++) {
        const keel_tensor *t = f->source->tensor(f->dataset->origin->state, i);
        if (f->bytes[i] && t && t->dtype == f->want[i] && !keel_feed_is_open(f, i))
            b->field[i] = (const char *)t->data + first * f->bytes[i];
    }
}

/* Prepare a slot for a step, before any row is read. */
static void open_slot(const keel_feed *f, keel_slot *s, uint32_t epoch, int64_t step)
{
    s->plan = keel_feed_plan_step(&f->plan, epoch, step);
    if (f->batched) open_batch(f, s);
    s->state = KEEL_SLOT_FILLING;
    s->faults.n = 0;
    s->failed = s->charged = false;
    s->number = f->next_fill;
    s->batch = (keel_batch){
        .n_field = f->n_field,
        .spec = s->field,
        .rows = s->plan.rows,
        .end = s->plan.rows,
        .duplicates = s->plan.duplicates,
        .first_row = s->plan.first_row,
        .epoch = epoch,
        .step = step,
        .untrained = f->o.untrained,
        .of = f,
    };
    if (f->partial) f->o.part(f->o.part_context, s->plan.rows, &s->batch.first, &s->batch.end);
    s->taken = s->done = s->batch.first;
    if (s->own) {
        pass_order order = { 0 };
        for (int64_t i = 0; i < s->plan.rows; i++) row_place(f, s, i, &order, &s->row[i]);
        keel_feed_measure(f, s);
    }
    point_into_arrays(f, s);
}

static keel_status of_row(const keel_dataset *d, const keel_slot *s, keel_status r, int64_t row)
{
    char place[KEEL_BATCH_PLACE_MAX];
    return keel_fail_within(r, "%s, row %lld of %s", keel_batch_place(&s->batch, place),
                            (long long)row, keel_dataset_name(d));
}

/* Compute the fields that depend on the rows just read. */
static int64_t make_rows(const keel_feed *f, const keel_slot *s, int64_t from, int64_t to,
                         keel_scratch *scratch, keel_failure *failure)
{
    int64_t failed;
    pass_order order = { 0 };
    const keel_status r = keel_feed_make(f, s, from, to, scratch, &failed);
    if (r >= 0) return failed;
    keel_position at;
    const keel_dataset *d = row_place(f, s, failed, &order, &at);
    keel_failure_take(failure, of_row(d, s, r, at.index));
    return failed;
}

/* Sources check the weights that they have; a stage may make others. */
static keel_status check_weights(const keel_feed *f, const keel_row *row, int64_t index)
{
    for (int k = 0; k < f->spec->n_field; k++)
        if (f->spec->field[k].role == KEEL_ROLE_WEIGHT && row->at[k])
            KEEL_TRY(keel_weights_check(row->at[k], row->want[k], 1, row->count[k], index,
                                        keel_dataset_name(f->dataset)));
    return KEEL_OK;
}

/* Before row i is read: tell of the files of later rows of the batch, of each file once. */
static void tell_of_files(const keel_feed *f, const keel_slot *s, int64_t i, pass_order *order)
{
    keel_position at;
    for (int64_t k = i > s->batch.first ? i + FILES_AHEAD : i + 1;
         k <= i + FILES_AHEAD && k < s->batch.end; k++) {
        const keel_dataset *d = row_place(f, s, k, order, &at);
        keel_dataset_soon(d, at);
    }
}

/* Read a row. Buffers of rows before it may be in the way where there is little room: then once
 * more without them. */
static keel_status read_row(const keel_feed *f, const keel_dataset *d, keel_position row,
                            const keel_row *at, keel_scratch *scratch)
{
    const int told = scratch->trail ? scratch->trail->faults.n : 0;
    const keel_status s = keel_dataset_read(d, row, at, scratch);
    if (s != KEEL_ENOMEM || !f->o.account || !f->o.account->limit) return s;
    keel_scratch_free(scratch);
    if (scratch->trail) scratch->trail->faults.n = told;
    if (scratch->trail) scratch->trail->failed_in = NULL;
    const keel_status again = keel_dataset_read(d, row, at, scratch);
    const bool alone = f->short_of_room || !f->n_threads; /* then no other thread reads now */
    if (again != KEEL_ENOMEM || !alone) return again;
    return keel_feed_short(f, scratch->trail ? scratch->trail->failed_in : NULL);
}

/* Read rows [from, to) of a slot; *failure gets that of the first row that fails. */
static int64_t read_rows(const keel_feed *f, keel_slot *s, int64_t from, int64_t to,
                         keel_scratch *scratch, keel_failure *failure)
{
    pass_order order = { 0 };
    const keel_batch *b = &s->batch;
    const int n = f->spec->n_field;
    bool any = false;
    keel_row at;
    at.want = f->want;
    at.count = s->count;
    for (int i = 0; i < n; i++) {
        const bool copied = s->at[i] && b->field[i] == s->at[i];
        at.at[i] = copied ? s->at[i] + (size_t)from * s->bytes[i] : NULL;
        any |= copied;
    }
    if (!any) return make_rows(f, s, from, to, scratch, failure);
    keel_position ahead[LOOK_AHEAD]; /* ring of the places of the next rows */
    keel_probe *p = scratch->probe;
    const int64_t first_place = (int64_t)s->number * f->max_rows;
    const keel_dataset *d = s->made_by ? s->made_by->parent[0] : f->dataset;
    for (int64_t i = from - LOOK_AHEAD; i < to; i++) {
        keel_position row = { 0 };
        if (i >= from) row = ahead[(i - from) % LOOK_AHEAD];
        if (i + LOOK_AHEAD < to) {
            keel_position *next = &ahead[(i + LOOK_AHEAD - from) % LOOK_AHEAD];
            row_place(f, s, i + LOOK_AHEAD, &order, next);
            if (f->source->expect && f->o.shuffle) keel_dataset_expect(d, *next);
        }
        if (i < from) continue;
        if (f->has_files) tell_of_files(f, s, i, &order);
        if (p && !f->source->in_memory)
            atomic_store_explicit(&p->place, first_place + i, memory_order_relaxed);
        keel_status r = read_row(f, d, row, &at, scratch);
        if (scratch->trail) keel_faults_number(&scratch->trail->faults, i);
        if (r >= 0 && f->dataset->origin->applied) r = check_weights(f, &at, row.index);
        if (r < 0) {
            keel_failure_take(failure, of_row(d, s, r, row.index));
            return i;
        }
        for (int k = 0; k < n; k++)
            if (at.at[k]) at.at[k] = (char *)at.at[k] + s->bytes[k];
    }
    return make_rows(f, s, from, to, scratch, failure);
}

/* With the lock held: a slot with rows to read, or NULL. Schedules the next step if its slot is
 * free. */
static keel_slot *find_work(keel_feed *f)
{
    if (f->paused || f->short_of_room) return NULL;
    for (uint64_t q = f->next_out; q < f->next_fill; q++) {
        keel_slot *s = keel_feed_slot(f, q);
        if (s->state == KEEL_SLOT_FILLING && !s->failed && s->taken < s->batch.end) return s;
    }
    if (!f->begun || f->next_fill >= f->next_out + (uint64_t)f->n_slots) return NULL;
    keel_slot *s = keel_feed_slot(f, f->next_fill);
    if (s->state != KEEL_SLOT_FREE) return NULL;
    while (f->fill_step >= keel_feed_plan_steps(&f->plan, f->fill_epoch)) {
        if (!f->o.epochs || f->fill_epoch + 1 >= (uint64_t)f->o.epochs) return NULL;
        f->fill_epoch++;
        f->fill_step = 0;
    }
    if (!f->o.epochs && f->fill_epoch != f->epoch) return NULL;
    open_slot(f, s, f->fill_epoch, f->fill_step++);
    f->next_fill++;
    return s;
}

/* With the lock held, after `rows` were read: choose how many a thread takes at once, at most so
 * many that all threads have a part of a batch. Rows do not depend on who reads them. */
static void choose_chunk(keel_feed *f, int64_t rows, double seconds)
{
    enum { PARTS = 4 }; /* of a batch, for each thread */
    const double turn = 100e-6;
    if (f->source->in_memory || rows == 0) return;
    const int64_t most = f->max_rows / (PARTS * f->n_used);
    f->chunk = keel_chunk(&f->row_seconds, seconds / (double)rows, turn, most);
}

/* Read rows of a slot without the lock, their time noted. */
static int64_t read_noted(const keel_feed *f, keel_slot *s, int64_t from, int64_t to,
                          keel_scratch *scratch, keel_failure *failure)
{
    keel_probe *p = scratch->probe;
    const keel_probe_span span = keel_probe_begin(p, 0);
    const keel_probe_mark m = keel_probe_rows(p, keel_work_gathers, to - from);
    const int64_t end = read_rows(f, s, from, to, scratch, failure);
    keel_probe_leave(p, m);
    keel_probe_end(p, &span);
    if (p) atomic_store_explicit(&p->place, INT64_MAX, memory_order_relaxed);
    return end;
}

/* With the lock held: there was too little room for the buffers of all threads. Wait until the
 * others have finished their rows, free their buffers, and read alone. */
static int64_t read_alone(keel_feed *f, keel_slot *s, int64_t from, int64_t to, keel_feed_thread *t,
                          keel_failure *failure)
{
    keel_scratch_free(&t->scratch);
    t->scratch.trail->faults.n = 0;
    f->busy--;
    f->n_short++;
    pthread_cond_broadcast(&f->ready);
    while (f->short_of_room || f->busy) pthread_cond_wait(&f->ready, &f->lock);
    f->n_short--;
    f->short_of_room = true;
    f->busy++;
    for (int i = 0; i < f->n_threads; i++) keel_scratch_free(&f->threads[i].scratch);
    pthread_mutex_unlock(&f->lock);
    const int64_t end = read_noted(f, s, from, to, &t->scratch, failure);
    pthread_mutex_lock(&f->lock);
    f->short_of_room = false;
    keel_tuner_short(f);
    pthread_cond_broadcast(&f->work_ready);
    pthread_cond_broadcast(&f->ready);
    return end;
}

void *keel_feed_rows_worker(void *thread)
{
    keel_feed_thread *t = thread;
    keel_feed *f = t->feed;
    keel_failure failure;
    pthread_mutex_lock(&f->lock);
    keel_trail *trail = t->scratch.trail;
    while (!f->quit) {
        if (t->number >= f->n_used) { /* a wait of its own, so that it takes no signal of others */
            pthread_cond_wait(&f->idle, &f->lock);
            continue;
        }
        keel_slot *s = find_work(f);
        if (!s) {
            pthread_cond_wait(&f->work_ready, &f->lock);
            continue;
        }
        const int64_t from = s->taken;
        const int64_t to = from + f->chunk < s->batch.end ? from + f->chunk : s->batch.end;
        s->taken = to;
        f->busy++;
        if (f->n_used > 1) pthread_cond_signal(&f->work_ready); /* there may be more work */
        pthread_mutex_unlock(&f->lock);
        const double begin = keel_seconds();
        int64_t end = read_noted(f, s, from, to, &t->scratch, &failure);
        const double took = keel_seconds() - begin;
        pthread_mutex_lock(&f->lock);
        if (end < to && failure.status == KEEL_ENOMEM && f->o.account && f->o.account->limit)
            end = read_alone(f, s, from, to, t, &failure);
        choose_chunk(f, to - from, took);
        s->done += to - from;
        const keel_status told = keel_faults_move(&s->faults, &trail->faults);
        if (end == to && told < 0) {
            keel_failure_take(&failure, told);
            end = from;
        }
        if (end < to && (!s->failed || end < s->failed_row)) {
            s->failed = true;
            s->failed_row = end;
            s->failure = failure;
        }
        if (s->done == s->taken && (s->failed || s->done == s->batch.end)) {
            if (!s->failed) {
                pthread_mutex_unlock(&f->lock);
                keel_feed_finish(f, s);
                pthread_mutex_lock(&f->lock);
            }
            s->state = KEEL_SLOT_READY;
            pthread_cond_broadcast(&f->ready);
        }
        if (--f->busy == 0 && (f->paused || f->n_short)) pthread_cond_broadcast(&f->ready);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

keel_status keel_feed_rows_begin(keel_feed *f, uint32_t epoch)
{
    /* Keep rows that were read ahead if they belong to this epoch. */
    if (f->next_fill > f->next_out) {
        const keel_slot *s = keel_feed_slot(f, f->next_out);
        if (f->begun && s->batch.epoch == epoch && s->batch.step == 0) return KEEL_OK;
    } else if (f->begun && f->fill_epoch == epoch && f->fill_step == 0) {
        return KEEL_OK;
    }
    keel_feed_flush(f);
    f->fill_epoch = epoch;
    f->fill_step = 0;
    return KEEL_OK;
}

/* Without threads the consumer reads; no other thread needs the lock. */
static void read_here(keel_feed *f, keel_slot *s)
{
    const int64_t begin = keel_clock_ns();
    open_slot(f, s, f->epoch, f->step);
    f->next_fill = f->next_out + 1;
    /* Weights cannot be left unread, as they are summed when a batch is finished; nor can fields
     * whose reading may fail. */
    if (f->o.leaves_rows && f->source->in_memory && f->weight < 0 && !f->may_fail)
        s->batch.unread = f;
    else
        s->failed =
            read_noted(f, s, s->batch.first, s->batch.end, &f->scratch, &s->failure) < s->batch.end;
    if (!s->failed && keel_faults_move(&s->faults, &f->trail->faults) < 0) {
        s->failed = true;
        keel_failure_take(&s->failure, KEEL_ENOMEM);
    }
    f->trail->faults.n = 0;
    if (!s->failed) keel_feed_finish(f, s);
    s->state = KEEL_SLOT_READY;
    const int64_t took = keel_clock_ns() - begin;
    keel_work_blame(f->work, KEEL_WORK_ANY, took);
    f->waited += 1e-9 * (double)took;
}

void keel_feed_prepare(keel_feed *f, keel_slot *s)
{
    if (!f->n_threads && !f->source->next && s->state == KEEL_SLOT_FREE) read_here(f, s);
}

void keel_feed_read(const keel_batch *b, int64_t from, int64_t to)
{
    const keel_feed *f = b->unread;
    keel_failure failure;
    keel_scratch scratch = { 0 }; /* a copy uses none */
    if (f) read_rows(f, &f->slots[b->slot], from, to, &scratch, &failure);
}

const keel_data_origin *keel_feed_row(const keel_batch *b, int64_t i, int64_t *index)
{
    const keel_feed *f = b->of;
    pass_order order = { 0 };
    keel_position at;
    if (!f) return NULL;
    const keel_dataset *d = row_place(f, &f->slots[b->slot], i, &order, &at);
    const keel_data_origin *o = keel_dataset_origin_at(d, &at);
    *index = at.index;
    return o;
}

/* Steps are charged in their order, each once. */
static void charge(keel_feed *f, keel_slot *s)
{
    const keel_status r = keel_ledger_charge(&f->ledger, &s->faults);
    s->charged = r >= 0;
    s->failed = r < 0;
    if (r >= 0) return;
    char place[KEEL_BATCH_PLACE_MAX];
    keel_fail_within(r, "%s", keel_batch_place(&s->batch, place));
    keel_failure_take(&s->failure, r);
}

keel_status keel_feed_rows_next(keel_feed *f, keel_slot **slot)
{
    keel_slot *s = *slot;
    if (f->step >= keel_feed_plan_steps(&f->plan, f->epoch)) return KEEL_END;
    if (s->state == KEEL_SLOT_TOLD) { /* read all of it again: the cause may have been removed */
        if (f->n_threads)
            open_slot(f, s, f->epoch, f->step);
        else
            s->state = KEEL_SLOT_FREE;
        pthread_cond_broadcast(&f->work_ready);
    }
    if (f->n_threads)
        keel_feed_wait(f, s);
    else if (s->state == KEEL_SLOT_FREE)
        read_here(f, s);
    if (s->state != KEEL_SLOT_READY) return keel_watchdog_fail(f->watchdog);
    if (!s->failed && !s->charged) charge(f, s);
    if (!s->failed) return KEEL_OK;
    s->state = KEEL_SLOT_TOLD;
    return keel_failure_raise(&s->failure);
}
