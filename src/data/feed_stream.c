/* The engine for streams: one thread calls the generator or sequence ahead of the step that needs
 * its rows, cuts its output into batches and applies the policy for the end of the data.
 *
 * The end of a stream is only known once it is reached, so the table of feed.h is applied while
 * reading. If the epoch began with the pass, the data is smaller than steps_per_epoch; if it began
 * inside the pass, it continues in the next. */
#include "base/memory.h"
#include "base/plural.h"
#include "data/feed_impl.h"
#include "data/flow.h"
#include "data/iter.h"
#include "tensor/shape.h"
#include "tensor/dtype.h"
#include <stdio.h>
#include <string.h>

enum { EMPTY_YIELDS_MAX = 1000 };

/* Used only by the producer: the reading thread, or without threads the consumer. */
struct keel_stream {
    uint32_t epoch; /* the epoch being produced */
    int64_t step, epoch_rows;
    bool epoch_open, epoch_over; /* begun; complete, but its end was not yet produced */
    bool began_with_pass;        /* the epoch's first row was the first of a pass */
    bool in_pass, used_up;       /* used_up: the stream ended and cannot begin again */
    bool rewound;                /* wrap: the pass was begun again to fill the last batch */
    uint32_t pass;
    int64_t pass_rows, known_rows; /* of this pass so far; of the last complete pass */
    int64_t filled;                /* rows in the current batch; kept after a failure */
    keel_failure dead;             /* a failure that trying again cannot repair */

    char *field[KEEL_FIELDS_MAX];  /* the pending yield, in the stream's own types */
    size_t bytes[KEEL_FIELDS_MAX]; /* of one of its rows */
    int64_t at, n;                 /* its rows [at, n) are still to be used */
    bool same_types;               /* batches have the stream's own types */
    keel_slot carry;               /* rows that open the next epoch, laid out as a batch */
    int64_t carried;
    keel_scratch scratch; /* for computed fields */
    keel_probe *probe;    /* of batches; that of the feed is of yields */
};

keel_status keel_feed_stream_create(keel_feed *f)
{
    keel_stream *t = f->stream = keel_calloc(1, sizeof *t);
    if (!t) return KEEL_ENOMEM;
    t->scratch.account = f->o.account;
    t->scratch.probe = t->probe = keel_work_probe(f->work, NULL);
    f->probe = keel_work_probe(f->work, NULL);
    const keel_data_spec *p = f->spec;
    const bool carries = f->o.end == KEEL_CARRY && f->o.batch_size;
    t->same_types = true;
    for (int i = 0; i < p->n_field; i++) {
        size_t n;
        if (p->shaped) continue; /* feed_staged.c has its buffer */
        t->bytes[i] = (size_t)f->count[i] * keel_dtype_size(p->field[i].dtype);
        t->same_types &= p->field[i].dtype == f->want[i];
        if (!keel_mul(t->bytes[i], (size_t)p->max_rows, &n))
            return keel_fail(KEEL_EARG, "%s: %lld rows in one yield are more than memory can hold",
                             keel_dataset_name(f->dataset), (long long)p->max_rows);
        if (!(t->field[i] = keel_aligned_calloc(1, n))) return KEEL_ENOMEM;
        if (carries && f->bytes[i] &&
            !(t->carry.at[i] = keel_calloc((size_t)f->max_rows, f->bytes[i])))
            return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

void keel_feed_stream_destroy(keel_feed *f)
{
    keel_stream *t = f->stream;
    if (!t) return;
    for (int i = 0; i < f->spec->n_field; i++) {
        keel_free(t->field[i]);
        keel_free(t->carry.at[i]);
    }
    keel_scratch_free(&t->scratch);
    keel_free(t);
    f->stream = NULL;
}

/* Keep a failure that trying again cannot repair. */
static keel_status die(keel_stream *t, keel_status s)
{
    keel_failure_take(&t->dead, s);
    return s;
}

/* Append n rows of the pending yield to the slot. */
static keel_status take(const keel_feed *f, keel_slot *s, int64_t n)
{
    keel_stream *t = f->stream;
    for (int i = 0; i < f->spec->n_field; i++)
        if (s->at[i])
            KEEL_TRY(keel_field_write(s->at[i] + (size_t)t->filled * f->bytes[i], f->want[i],
                                      t->field[i] + (size_t)t->at * t->bytes[i], &f->spec->field[i],
                                      n * f->count[i]));
    t->at += n;
    t->filled += n;
    return KEEL_OK;
}

/* Copy the first n rows of a slot to another. */
static void copy_rows(const keel_feed *f, keel_slot *to, const keel_slot *from, int64_t n)
{
    for (int i = 0; n && !f->staged && i < f->spec->n_field; i++)
        if (f->bytes[i]) memcpy(to->at[i], from->at[i], (size_t)n * f->bytes[i]);
}

static keel_status used_up(const keel_feed *f)
{
    keel_stream *t = f->stream;
    return die(t,
               keel_fail(KEEL_EDATA,
                         "%s is used up %s epoch %u and has no reset: give it one, or ask for "
                         "fewer epochs or steps",
                         keel_dataset_name(f->dataset), t->step ? "in" : "before", t->epoch + 1));
}

/* Begin a pass unless the stream is in one. */
static keel_status enter_pass(const keel_feed *f)
{
    keel_stream *t = f->stream;
    const keel_chance order = { .seed = f->o.seed,
                                .epoch = t->pass,
                                .stream = KEEL_STREAM_SHUFFLE };
    if (t->in_pass) return KEEL_OK;
    if (t->used_up) return used_up(f);
    KEEL_TRY(f->source->begin(f->state, t->pass, f->o.shuffle ? &order : NULL));
    t->in_pass = true;
    t->pass_rows = 0;
    return KEEL_OK;
}

static keel_status leave_pass(const keel_feed *f)
{
    keel_stream *t = f->stream;
    t->in_pass = false;
    t->pass++;
    t->known_rows = t->pass_rows;
    t->used_up = f->spec->one_shot;
    if (f->spec->rows >= 0 && t->pass_rows != f->spec->rows)
        return die(t, keel_fail(KEEL_EDATA, "%s ended after %lld row%s, but announced %lld",
                                keel_dataset_name(f->dataset), (long long)t->pass_rows,
                                keel_s(t->pass_rows), (long long)f->spec->rows));
    if (!t->pass_rows)
        return die(t, keel_fail(KEEL_EDATA, "%s has no rows", keel_dataset_name(f->dataset)));
    return KEEL_END;
}

/* The next rows of a stream whose rows have their own shapes. */
static keel_status next_shaped(const keel_feed *f, int64_t *rows)
{
    keel_stream *t = f->stream;
    const keel_data_spec *p = f->spec;
    const void *data[KEEL_FIELDS_MAX] = { NULL };
    keel_shape shape[KEEL_FIELDS_MAX];
    for (int i = 0; i < p->n_field; i++) shape[i] = p->field[i].shape;
    const keel_status s = f->source->next_shaped(f->state, data, shape, rows);
    if (s != KEEL_OK || !*rows) return s;
    keel_status r = keel_feed_stage(f, t->filled == 0, data, shape, *rows);
    for (int k = 0; k < p->n_field && r >= 0; k++)
        if (p->field[k].role == KEEL_ROLE_WEIGHT)
            r = keel_weights_check(data[k], p->field[k].dtype, *rows, keel_shape_count(&shape[k]),
                                   t->pass_rows, keel_dataset_name(f->dataset));
    return r < 0 ? die(t, r) : KEEL_OK; /* the stream does not give the row a second time */
}

/* Get the next yield: straight into the slot if it fits unchanged, else as the pending one.
 * KEEL_END: the pass is over. */
static keel_status pull(const keel_feed *f, keel_slot *s)
{
    keel_stream *t = f->stream;
    const keel_data_spec *p = f->spec;
    /* one thread at most; a pipeline has trails of its own */
    keel_trail *trail = f->flow ? NULL : &f->trail[f->n_trail - 1];
    if (t->at < t->n) return KEEL_OK;
    KEEL_TRY(enter_pass(f));
    const bool fits = f->max_rows - t->filled >= p->max_rows && t->same_types;
    const keel_batch next = { .epoch = t->epoch, .step = t->step, .untrained = f->o.untrained };
    char place[KEEL_BATCH_PLACE_MAX];
    void *field[KEEL_FIELDS_MAX];
    for (int i = 0; i < p->n_field; i++)
        field[i] =
            fits && s->at[i] ? s->at[i] + (size_t)t->filled * f->bytes[i] : (void *)t->field[i];
    for (int i = 0; i < EMPTY_YIELDS_MAX; i++) {
        int64_t rows = 0;
        keel_probe *probe = f->flow ? NULL : f->probe; /* a flow has probes of its own */
        const keel_trail_mark before = keel_trail_enter(trail, f->dataset->origin, t->pass_rows);
        const keel_probe_span span = keel_probe_begin(probe, KEEL_WORK_YIELD);
        const keel_probe_mark m = keel_probe_resume(probe, f->dataset->origin);
        const keel_status r =
            f->staged ? next_shaped(f, &rows) : f->source->next(f->state, field, &rows);
        keel_probe_leave_rows(probe, m, rows);
        keel_probe_end(probe, &span);
        keel_trail_leave(trail, before);
        if (r == KEEL_ENOMEM && f->flow && f->o.account && f->o.account->limit)
            keel_feed_short(f, keel_flow_run(f->flow)->place.failed_in);
        if (r < 0)
            return keel_fail_within(r, "%s, after %lld row%s of the pass",
                                    keel_batch_place(&next, place), (long long)t->pass_rows,
                                    keel_s(t->pass_rows));
        if (r == KEEL_END) return leave_pass(f);
        if (!rows) continue;
        for (int k = 0; k < p->n_field && !f->staged; k++)
            if (p->field[k].role == KEEL_ROLE_WEIGHT &&
                keel_weights_check(field[k], p->field[k].dtype, rows,
                                   keel_shape_count(&p->field[k].shape), t->pass_rows,
                                   keel_dataset_name(f->dataset)) < 0)
                return die(t, KEEL_EDATA);
        t->pass_rows += rows;
        if (p->rows >= 0 && t->pass_rows > p->rows)
            return die(t, keel_fail(KEEL_EDATA, "%s yields more than the %lld row%s it announced",
                                    keel_dataset_name(f->dataset), (long long)p->rows,
                                    keel_s(p->rows)));
        if (fits || f->staged) {
            t->filled += rows;
        } else {
            t->at = 0;
            t->n = rows;
        }
        return KEEL_OK;
    }
    return keel_fail(KEEL_EDATA, "%s: %d empty yields in succession", keel_dataset_name(f->dataset),
                     EMPTY_YIELDS_MAX);
}

typedef enum after_pass { GO_ON, GIVE_SHORT, NOTHING_LEFT } after_pass;

static keel_status never_fills(const keel_feed *f)
{
    return die(f->stream, keel_fail(KEEL_EDATA, "%s: its %lld rows never fill a batch of %lld",
                                    keel_dataset_name(f->dataset), (long long)f->stream->known_rows,
                                    (long long)f->max_rows));
}

/* Apply the policy: the pass is over and the current batch has t->filled rows. */
static keel_status decide(const keel_feed *f, keel_slot *s, after_pass *what)
{
    keel_stream *t = f->stream;
    const keel_feed_options *o = &f->o;
    const bool asked = o->steps_per_epoch > 0;
    /* The pass ended with the last epoch, except for rows that would be carried. */
    if (asked && !t->step &&
        (!t->filled || (o->end == KEEL_CARRY && !t->began_with_pass && !t->used_up))) {
        t->began_with_pass = true;
        *what = GO_ON;
        return KEEL_OK;
    }
    const bool goes_on = asked && !t->began_with_pass;
    const bool last = o->epochs && t->epoch + 1 >= (uint64_t)o->epochs;
    *what = goes_on && !t->used_up ? GO_ON : NOTHING_LEFT;
    if (!o->batch_size) {
        if (asked && o->end == KEEL_WRAP && !f->spec->batched) *what = GO_ON;
        return KEEL_OK;
    }
    switch (o->end) {
    case KEEL_KEEP:
        if (t->filled) *what = GIVE_SHORT;
        break;
    case KEEL_DROP:
        if (!t->step && !goes_on) return never_fills(f);
        if (!t->step && t->used_up) return used_up(f); /* an epoch has a step */
        if (t->filled)
            snprintf(s->note, sizeof s->note, "%s: the last %lld of %lld rows %s left out",
                     keel_dataset_name(f->dataset), (long long)t->filled, (long long)t->known_rows,
                     t->filled == 1 ? "is" : "are");
        t->filled = 0;
        break;
    case KEEL_CARRY:
        if (*what == GO_ON) break;
        if (last || t->used_up) {
            if (t->filled) *what = GIVE_SHORT;
            break;
        }
        if (!t->step && !goes_on) return never_fills(f);
        copy_rows(f, &t->carry, s, t->filled);
        t->carried = t->filled;
        t->filled = 0;
        break;
    case KEEL_WRAP:
        if (!asked && !t->filled) break;
        *what = GO_ON;
        if (asked) break;
        t->rewound = true;
        t->pass--; /* in the same shuffled order again */
        break;
    case KEEL_REFUSE:
        if (t->filled)
            return die(t, keel_fail(KEEL_EDATA,
                                    "%s: the last batch has %lld row%s of %lld, and the end of the "
                                    "data is set to be an error",
                                    keel_dataset_name(f->dataset), (long long)t->filled,
                                    keel_s(t->filled), (long long)o->batch_size));
        break;
    }
    return KEEL_OK;
}

static void open_epoch(const keel_feed *f, keel_slot *s)
{
    keel_stream *t = f->stream;
    t->epoch_open = true;
    t->epoch_over = false;
    t->step = t->epoch_rows = 0;
    t->began_with_pass = !t->in_pass && t->at == t->n;
    copy_rows(f, s, &t->carry, t->carried);
    t->filled = t->carried;
    t->carried = 0;
}

static void give_end(const keel_feed *f, keel_slot *s)
{
    keel_stream *t = f->stream;
    s->is_end = true;
    s->batch = (keel_batch){ .epoch = t->epoch, .step = t->step };
    if (f->o.steps_per_epoch && t->step < f->o.steps_per_epoch)
        snprintf(s->note, sizeof s->note,
                 "%s: epoch %u ends early, after %lld of the %lld steps of steps_per_epoch",
                 keel_dataset_name(f->dataset), t->epoch + 1, (long long)t->step,
                 (long long)f->o.steps_per_epoch);
    t->epoch_open = false;
    t->epoch++;
    if (!f->o.anew || !t->in_pass || f->spec->one_shot) return;
    t->in_pass = false;
    t->pass++;
    t->at = t->n = 0;
}

static keel_status finish_batch(const keel_feed *f, keel_slot *s)
{
    keel_stream *t = f->stream;
    keel_batch *b = &s->batch;
    char place[KEEL_BATCH_PLACE_MAX];
    int64_t failed;
    if (f->staged) KEEL_TRY(keel_feed_unstage(f, s));
    *b = (keel_batch){
        .n_field = f->n_field, .spec = s->field, .rows = t->filled, .end = t->filled
    };
    memcpy(b->field, s->at, (size_t)f->n_field * sizeof *b->field);
    /* Of batches that a pipeline makes, the place of a row counts full ones, as by number. */
    const bool by_batch = f->spec->batched && f->dataset->origin->applied;
    b->first_row = (uint64_t)(by_batch ? t->step * f->max_rows : t->epoch_rows);
    b->epoch = t->epoch;
    b->step = t->step;
    b->untrained = f->o.untrained;
    const keel_status r = keel_feed_make(f, s, 0, t->filled, &t->scratch, &failed);
    if (r < 0)
        return die(t, keel_fail_within(r, "%s, row %lld of it", keel_batch_place(b, place),
                                       (long long)failed));
    /* How many rows an earlier pass had tells nothing of this one, unless the epoch has both. */
    if (f->o.end == KEEL_WRAP && t->known_rows && (t->rewound || f->o.steps_per_epoch)) {
        const int64_t over = t->epoch_rows + t->filled - t->known_rows;
        b->duplicates = over < 0 ? 0 : over > t->filled ? t->filled : over;
    }
    s->is_end = false;
    keel_feed_finish(f, s);
    t->epoch_rows += t->filled;
    t->step++;
    t->filled = 0;
    if (!t->rewound) return KEEL_OK;
    t->rewound = t->in_pass = false; /* the rest of the repeated pass is not used */
    t->at = t->n = 0;
    t->pass++;
    t->epoch_over = true;
    return KEEL_OK;
}

static keel_status give_batch(const keel_feed *f, keel_slot *s)
{
    keel_probe *p = f->stream->probe;
    const keel_probe_span span = keel_probe_begin(p, 0);
    const keel_probe_mark m = keel_probe_rows(p, keel_work_gathers, f->stream->filled);
    const keel_status r = finish_batch(f, s);
    keel_probe_leave(p, m);
    keel_probe_end(p, &span);
    return r;
}

/* Produce the next item in a free slot. After a failure a second call continues where it stopped.
 */
static keel_status produce(const keel_feed *f, keel_slot *s)
{
    keel_stream *t = f->stream;
    after_pass what = GO_ON;
    if (t->dead.status < 0) return keel_failure_raise(&t->dead);
    s->note[0] = 0;
    if (!t->epoch_open) open_epoch(f, s);
    if (t->epoch_over || (f->o.steps_per_epoch && t->step >= f->o.steps_per_epoch)) {
        give_end(f, s);
        return KEEL_OK;
    }
    while (f->o.batch_size ? t->filled < f->o.batch_size : !t->filled) {
        const keel_status r = pull(f, s);
        if (r < 0) return r;
        if (r == KEEL_END) {
            KEEL_TRY(decide(f, s, &what));
            if (what == GO_ON) continue;
            /* A short batch ends the pass, not the epoch. */
            t->epoch_over = t->began_with_pass || !f->o.steps_per_epoch || t->used_up;
            if (what == GIVE_SHORT) break;
            t->epoch_over = true;
            give_end(f, s);
            return KEEL_OK;
        }
        const int64_t left = t->n - t->at, room = f->max_rows - t->filled;
        if (left > 0) KEEL_TRY(take(f, s, left < room ? left : room));
    }
    return give_batch(f, s);
}

static void produce_into(keel_feed *f, keel_slot *s)
{
    keel_relief *before = keel_account_relief(f->flow ? &keel_flow_run(f->flow)->relief : NULL);
    const keel_status r = produce(f, s);
    keel_account_relief(before);
    s->failed = r < 0;
    if (s->failed) keel_failure_take(&s->failure, r);
}

/* With the lock held: true if the next item may be produced. A failure stays in its slot until the
 * consumer tries again. */
static bool may_produce(const keel_feed *f)
{
    const keel_stream *t = f->stream;
    const keel_slot *s = keel_feed_slot(f, f->next_fill);
    if (f->paused || !f->begun) return false;
    if (s->state == KEEL_SLOT_FILLING) return true;
    return s->state == KEEL_SLOT_FREE && f->next_fill < f->next_out + (uint64_t)f->n_slots &&
           (t->epoch <= f->epoch || t->epoch < (uint64_t)f->o.epochs);
}

void *keel_feed_stream_worker(void *thread)
{
    keel_feed *f = ((keel_feed_thread *)thread)->feed;
    pthread_mutex_lock(&f->lock);
    while (!f->quit) {
        if (!may_produce(f)) {
            pthread_cond_wait(&f->work_ready, &f->lock);
            continue;
        }
        keel_slot *s = keel_feed_slot(f, f->next_fill);
        s->state = KEEL_SLOT_FILLING;
        f->busy++;
        pthread_mutex_unlock(&f->lock);
        produce_into(f, s);
        pthread_mutex_lock(&f->lock);
        f->busy--;
        s->state = KEEL_SLOT_READY;
        if (!s->failed) f->next_fill++;
        pthread_cond_broadcast(&f->ready);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* The next slot, produced by the thread or, without one, here. */
static keel_slot *await(keel_feed *f)
{
    keel_slot *s = keel_feed_slot(f, f->next_out);
    if (s->state == KEEL_SLOT_TOLD) {
        s->state = KEEL_SLOT_FILLING;
        pthread_cond_broadcast(&f->work_ready);
    }
    if (f->n_threads) {
        keel_feed_wait(f, s);
    } else if (s->state != KEEL_SLOT_READY) {
        const int64_t begin = keel_clock_ns();
        produce_into(f, s);
        s->state = KEEL_SLOT_READY;
        if (!s->failed) f->next_fill++;
        const int64_t took = keel_clock_ns() - begin;
        keel_work_blame(f->work, KEEL_WORK_ANY, took);
        f->waited += 1e-9 * (double)took;
    }
    return s;
}

void keel_feed_stream_enter(keel_feed *f, uint32_t epoch)
{
    keel_stream *t = f->stream;
    const bool in_order =
        f->begun && (f->ended ? epoch == f->epoch + 1 : epoch == f->epoch && f->step == 0);
    if (!in_order) {
        keel_feed_flush(f);
        if (t->in_pass) t->pass++;
        if (!f->o.steps_per_epoch || f->o.anew) t->pass = epoch;
        t->epoch = epoch;
        t->epoch_open = t->in_pass = t->rewound = false;
        t->at = t->n = t->carried = t->filled = 0;
        t->dead = (keel_failure){ 0 };
    }
    f->begun = true;
    f->ended = false;
    f->epoch = epoch;
    f->step = 0;
    pthread_cond_broadcast(&f->work_ready);
}

keel_status keel_feed_stream_first(keel_feed *f)
{
    if (!f->spec->one_shot) return KEEL_OK;
    /* A stream that cannot begin again must have a row before the epoch begins. */
    keel_slot *s = await(f);
    if (s->state != KEEL_SLOT_READY) return keel_watchdog_fail(f->watchdog);
    if (!s->failed || s->failure.status != KEEL_EDATA) return KEEL_OK;
    s->state = KEEL_SLOT_TOLD;
    return keel_failure_raise(&s->failure);
}

keel_status keel_feed_stream_next(keel_feed *f, keel_slot **slot)
{
    keel_slot *s = *slot = await(f);
    if (s->state != KEEL_SLOT_READY) return keel_watchdog_fail(f->watchdog);
    if (s->failed) {
        s->state = KEEL_SLOT_TOLD;
        return keel_failure_raise(&s->failure);
    }
    if (s->note[0]) memcpy(f->note, s->note, sizeof f->note);
    if (!s->is_end) return KEEL_OK;
    s->state = KEEL_SLOT_FREE;
    f->next_out++;
    pthread_cond_signal(&f->work_ready);
    return KEEL_END;
}
