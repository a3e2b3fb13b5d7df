/* The part of the feed that both engines share: slots, threads, epochs and steps. feed.h has the
 * contract; feed_rows.c and feed_stream.c fill the slots, feed_fields.c says what is in them,
 * feed_options.c which options go together, feed_facts.c what a feed tells of itself. */
#include "data/feed.h"
#include "base/memory.h"
#include "data/feed_impl.h"
#include "data/flow.h"
#include "data/iter.h"
#include "data/pool.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { INLINE_BYTES = 1 << 20 };

/* So many are started where nobody says how many; how many of them read is found later. They may
 * wait for a disk, so there are more than cores. */
static int most_threads(void)
{
    enum { MOST = 16 };
    const int n = 2 * keel_reading_threads();
    return n < MOST ? n : MOST;
}

/* The number of reading threads: none if copying a batch from memory is faster than waking a
 * thread, one if only a few texts are looked up. */
static int choose_threads(const keel_feed *f)
{
    const double batch_bytes = (double)f->max_rows * (double)f->row_bytes;
    if (f->remote) return 0;
    if (f->shared) return 1; /* the consumer must be able to wait, and tell the others */
    if (f->o.threads < 0) return 0;
    if (f->source->next) return 1;
    if (f->o.threads) return f->o.threads;
    if (f->source->in_memory) return f->n_made || batch_bytes > INLINE_BYTES ? 1 : 0;
    return most_threads();
}

/* A pipeline that is a stream has threads of its own, which read ahead of the feed's one. */
static int flow_threads(const keel_feed *f)
{
    return f->o.threads < 0 ? 0 : f->o.threads ? f->o.threads : most_threads();
}

static keel_status create_flow(keel_feed *f)
{
    const keel_flow_options o = {
        .seed = f->o.seed,
        .threads = flow_threads(f),
        .leaves_early = f->o.end == KEEL_WRAP && f->o.batch_size,
        .keep = ((f->o.slots ? f->n_slots : KEEL_SLOTS_TUNED) + 3) *
                (f->spec->batched ? 1 : f->max_rows),
        .work = f->work,
        .account = f->o.account,
    };
    KEEL_TRY(keel_flow_create(&f->flow, f->dataset, &o));
    f->state = f->flow;
    return KEEL_OK;
}

/* The limit of a wait is reached. */
static void wake(void *feed)
{
    keel_feed *f = feed;
    pthread_mutex_lock(&f->lock);
    pthread_cond_broadcast(&f->ready);
    pthread_mutex_unlock(&f->lock);
}

/* A trail for each thread, and a watchdog that looks at them. */
static keel_status watch(keel_feed *f)
{
    f->n_trail = choose_threads(f) + 1;
    if (!(f->trail = keel_calloc((size_t)f->n_trail, sizeof *f->trail))) return KEEL_ENOMEM;
    f->scratch.trail = f->trail;
    KEEL_TRY(keel_watchdog_create(&f->watchdog, f->o.watch, f->dataset, "", wake, f));
    KEEL_TRY(keel_watchdog_add(f->watchdog, f->trail, f->n_trail));
    return f->flow ? keel_run_watch(keel_flow_run(f->flow), f->watchdog) : KEEL_OK;
}

static void init_locks(keel_feed *f)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work_ready, NULL);
    pthread_cond_init(&f->idle, NULL);
    pthread_cond_init(&f->ready, &clock);
    pthread_condattr_destroy(&clock);
}

/* The slots that a last stage asks for: the batches that are ready, and the one of the step. */
static keel_status ask_for_slots(keel_feed *f)
{
    const keel_applied *s = f->dataset->origin->applied;
    const int64_t ahead = s && s->stage->ahead ? s->stage->ahead(s) : 0;
    if (!ahead || f->o.slots) return KEEL_OK;
    const int64_t rows = f->spec->batched ? 1 : f->max_rows;
    const int64_t batches = (ahead - 1) / rows + 1;
    if (batches >= KEEL_SLOTS_MAX)
        return keel_fail(KEEL_EARG, "%s: %lld batches are to be ready; at most %d can be",
                         keel_dataset_name(f->dataset), (long long)batches, KEEL_SLOTS_MAX - 1);
    f->o.slots = (int)batches + 1;
    return KEEL_OK;
}

/* Everything up to the first buffer of rows. */
static keel_status plan_feed(keel_feed *f, const keel_dataset *dataset,
                             const keel_feed_options *options)
{
    f->dataset = dataset;
    f->spec = &dataset->origin->spec;
    f->source = dataset->origin->source;
    f->state = dataset->origin->state;
    f->o = *options;
    f->o.share = NULL; /* it may be gone later */
    if (f->source->next && options->share && options->share->n_process > 1) {
        f->share = *options->share;
        f->shared = true;
        f->remote = f->share.process > 0;
        if (f->remote) f->o.watch = NULL; /* process 0 tells of its waits */
    }
    init_locks(f);
    if (dataset->origin->applied) {
        f->o.shuffle = false; /* as in Keras: a pipeline has its own order */
        f->batched = f->spec->batched && dataset->origin->applied->by_index;
    }
    KEEL_TRY(keel_feed_check_options(f));
    KEEL_TRY(keel_feed_choose_fields(f));
    f->max_rows = f->o.batch_size ? f->o.batch_size : f->spec->max_rows;
    f->planned = f->batched || (dataset->rows >= 0 && f->o.batch_size);
    f->epoch = (uint32_t)f->o.first_epoch;
    KEEL_TRY(ask_for_slots(f));
    if (f->planned) {
        const char *name = keel_dataset_name(dataset);
        keel_feed_options plan = f->o;
        if (f->batched) {
            plan.batch_size = 1;
            plan.end = KEEL_KEEP;
        }
        KEEL_TRY(keel_feed_plan_init(&f->plan, dataset->rows, &plan, name));
        if (!keel_feed_plan_can_count(&f->plan, f->epoch))
            return keel_fail(KEEL_EARG, "epoch %u is more than can be counted", f->epoch);
        int64_t counts[2];
        keel_feed_plan_counts(&f->plan, counts);
        if (f->source->read && !f->batched) f->max_rows = counts[0];
        if (!f->batched) keel_feed_plan_note(&f->plan, name, f->note, sizeof f->note);
        if (f->batched && f->plan.kind == KEEL_PLAN_WHOLE && f->o.steps_per_epoch > dataset->rows)
            snprintf(f->note, sizeof f->note,
                     "%s: %lld batch%s as many steps, not the %lld of steps_per_epoch: every "
                     "epoch ends early",
                     name, (long long)dataset->rows, dataset->rows == 1 ? " makes" : "es make",
                     (long long)f->o.steps_per_epoch);
    }
    return f->source->next ? keel_feed_check_stream(f) : KEEL_OK;
}

keel_status keel_feed_least(int64_t *out, int64_t *reading, const keel_dataset *dataset,
                            const keel_feed_options *options)
{
    keel_feed *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    const keel_status s = plan_feed(f, dataset, options);
    if (s >= 0) *out = keel_feed_need(f);
    if (s >= 0 && reading) *reading = keel_feed_reading(f);
    keel_feed_destroy(f);
    return s;
}

static keel_status start_threads(keel_feed *f)
{
    const int n = choose_threads(f);
    if (!n) return KEEL_OK;
    if (!(f->threads = keel_calloc((size_t)n, sizeof *f->threads))) return KEEL_ENOMEM;
    f->n_used = n;
    pthread_mutex_lock(&f->lock); /* held until all are started, since threads read n_threads */
    for (; f->n_threads < n; f->n_threads++) {
        keel_feed_thread *t = &f->threads[f->n_threads];
        t->feed = f;
        t->number = f->n_threads;
        t->scratch.account = f->o.account;
        t->scratch.trail = &f->trail[1 + t->number];
        if (!f->source->next) t->scratch.probe = keel_work_probe(f->work, t->scratch.trail);
        if (pthread_create(&t->id, NULL,
                           f->source->next ? keel_feed_stream_worker : keel_feed_rows_worker, t))
            break;
    }
    pthread_mutex_unlock(&f->lock);
    /* fewer threads than requested are accepted, none are not */
    return f->n_threads ? KEEL_OK : keel_fail(KEEL_ENOMEM, "feed: no thread could be started");
}

/* One for each thread, and for what the feed does itself. */
static int probes(const keel_feed *f)
{
    enum { OWN = 3 };
    const bool flows = f->source->next && f->dataset->origin->applied;
    return OWN + choose_threads(f) + (flows ? flow_threads(f) : 0);
}

keel_status keel_feed_create(keel_feed **out, const keel_dataset *dataset,
                             const keel_feed_options *options)
{
    keel_feed *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    keel_status s = plan_feed(f, dataset, options);
    if (s < 0) goto out;
    if ((s = keel_work_create(&f->work, dataset, probes(f))) < 0) goto out;
    if ((s = keel_feed_take_memory(f)) < 0) goto out;
    f->scratch.account = f->o.account;
    const bool streams = f->source->next && !f->remote;
    if (streams && dataset->origin->applied && (s = create_flow(f)) < 0) goto out;
    if (streams && (s = keel_feed_stream_create(f)) < 0) goto out;
    if (f->spec->shaped && !f->remote && (s = keel_feed_staged_create(f)) < 0) goto out;
    if ((s = watch(f)) < 0) goto out;
    if (f->source->read && (s = keel_ledger_create(&f->ledger, dataset)) < 0) goto out;
    f->partial = f->source->read && f->o.part && f->ledger.n == 0; /* budgets are of all rows */
    f->has_files = keel_dataset_has_files(dataset);
    f->chunk = f->source->in_memory ? 1 + (64 << 10) / (f->row_bytes + 1) : 1;
    if ((s = start_threads(f)) < 0) goto out;
    if (!f->n_threads && !f->source->next) f->scratch.probe = keel_work_probe(f->work, f->trail);
    pthread_mutex_lock(&f->lock);
    keel_tuner_begin(f);
    pthread_mutex_unlock(&f->lock);
    *out = f;
    f = NULL;
    s = KEEL_OK;
out:
    keel_feed_destroy(f);
    return s;
}

void keel_feed_destroy(keel_feed *f)
{
    if (!f) return;
    keel_watchdog_destroy(f->watchdog);
    pthread_mutex_lock(&f->lock);
    f->quit = true;
    pthread_cond_broadcast(&f->work_ready);
    pthread_cond_broadcast(&f->idle);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->n_threads; i++) pthread_join(f->threads[i].id, NULL);
    for (int i = 0; i < f->n_threads; i++) keel_scratch_free(&f->threads[i].scratch);
    if (f->stream && f->source->rest) f->source->rest(f->state);
    keel_feed_stream_destroy(f);
    keel_feed_staged_destroy(f);
    keel_flow_destroy(f->flow);
    keel_feed_give_memory(f);
    keel_free(f->made);
    keel_free(f->threads);
    keel_scratch_free(&f->scratch);
    for (int i = 0; f->trail && i < f->n_trail; i++) keel_faults_free(&f->trail[i].faults);
    keel_free(f->trail);
    keel_ledger_free(&f->ledger);
    keel_work_destroy(f->work);
    pthread_cond_destroy(&f->ready);
    pthread_cond_destroy(&f->work_ready);
    pthread_cond_destroy(&f->idle);
    pthread_mutex_destroy(&f->lock);
    keel_free(f);
}

void keel_feed_flush(keel_feed *f)
{
    f->paused = true;
    while (f->busy || f->n_short) pthread_cond_wait(&f->ready, &f->lock);
    for (int i = 0; i < f->n_slots; i++)
        if (f->slots[i].state != KEEL_SLOT_HELD) f->slots[i].state = KEEL_SLOT_FREE;
    f->next_fill = f->next_out;
    f->paused = false;
}

keel_status keel_feed_begin_epoch(keel_feed *f, uint32_t epoch)
{
    keel_status s;
    if (f->planned && !keel_feed_plan_can_count(&f->plan, epoch))
        return keel_fail(KEEL_EARG, "epoch %u is more than can be counted", epoch);
    if (f->shared) return keel_feed_shared_begin(f, epoch);
    pthread_mutex_lock(&f->lock);
    keel_watchdog_begin(f->watchdog);
    if (f->source->next) {
        keel_feed_stream_enter(f, epoch);
        s = keel_feed_stream_first(f);
    } else {
        s = keel_feed_rows_begin(f, epoch);
    }
    keel_watchdog_end(f->watchdog);
    if (s >= 0) {
        f->begun = true;
        f->ended = false;
        f->epoch = epoch;
        f->step = 0;
    }
    pthread_cond_broadcast(&f->work_ready);
    pthread_mutex_unlock(&f->lock);
    return s;
}

static keel_status discard_steps(keel_feed *f, int64_t steps)
{
    while (steps < 0 || f->step < steps) {
        keel_batch b;
        const keel_status s = keel_feed_next(f, &b);
        if (s < 0) return s;
        if (s == KEEL_END && steps < 0) return KEEL_OK;
        if (s == KEEL_END)
            return keel_fail(KEEL_EARG, "%s: epoch %u has no step %lld",
                             keel_dataset_name(f->dataset), f->epoch + 1, (long long)steps);
        f->again += b.rows;
        keel_feed_release(f, &b);
    }
    return KEEL_OK;
}

/* Read and discard steps of the current epoch: `steps` of them, or if that is negative all. */
static keel_status discard(keel_feed *f, int64_t steps)
{
    f->passes_over = true; /* their rows need not travel */
    const keel_status s = discard_steps(f, steps);
    f->passes_over = false;
    return s;
}

/* True if an epoch can be read without those before it. */
static bool stands_alone(const keel_feed *f)
{
    return !f->source->next ||
           (f->spec->by_pass && (!f->o.steps_per_epoch || f->o.anew) && f->o.end != KEEL_CARRY);
}

int64_t keel_feed_rows_before(const keel_feed *f, uint32_t epoch, int64_t rows)
{
    if (!f->source->next) return 0;
    if (stands_alone(f)) return rows;
    for (uint32_t e = (uint32_t)f->o.first_epoch; e < epoch; e++) {
        const int64_t steps = f->o.steps_per_epoch;
        const int64_t n = f->planned         ? keel_feed_plan_rows(&f->plan, e)
                          : steps            ? steps * f->max_rows
                          : f->spec->batched ? -1
                                             : f->dataset->rows;
        if (n < 0 || rows > INT64_MAX - n) return -1;
        rows += n;
    }
    return rows;
}

int64_t keel_feed_rows_again(const keel_feed *f)
{
    return f->again;
}

keel_status keel_feed_pass_over(keel_feed *f, uint32_t epoch)
{
    if (stands_alone(f)) return KEEL_OK;
    KEEL_TRY(keel_feed_begin_epoch(f, epoch));
    return discard(f, -1);
}

/* A stream cannot be addressed by row: its rows are read and discarded, from the begin of the epoch
 * or, unless that depends on nothing before it, of the run. */
static keel_status skip_steps(keel_feed *f, uint32_t epoch, int64_t step)
{
    for (uint32_t e = (uint32_t)f->o.first_epoch; e < epoch; e++)
        KEEL_TRY(keel_feed_pass_over(f, e));
    KEEL_TRY(keel_feed_begin_epoch(f, epoch));
    return discard(f, step);
}

keel_status keel_feed_seek(keel_feed *f, uint32_t epoch, int64_t step)
{
    if (f->source->next) return skip_steps(f, epoch, step);
    KEEL_TRY(keel_feed_begin_epoch(f, epoch));
    const int64_t steps = keel_feed_plan_steps(&f->plan, epoch);
    if (step < 0 || step > steps)
        return keel_fail(KEEL_EARG, "%s: epoch %u has %lld steps, so there is none after step %lld",
                         keel_dataset_name(f->dataset), epoch + 1, (long long)steps,
                         (long long)step);
    pthread_mutex_lock(&f->lock);
    keel_feed_flush(f);
    f->fill_epoch = epoch; /* threads may have gone on to the next one already */
    f->fill_step = f->step = step;
    pthread_cond_broadcast(&f->work_ready);
    pthread_mutex_unlock(&f->lock);
    return KEEL_OK;
}

keel_status keel_feed_next(keel_feed *f, keel_batch *out)
{
    if (!f->begun) return keel_fail(KEEL_EARG, "feed: begin an epoch first");
    return f->shared ? keel_feed_shared_next(f, out) : keel_feed_next_own(f, out);
}

keel_status keel_feed_next_own(keel_feed *f, keel_batch *out)
{
    keel_status s = KEEL_END;
    keel_slot *slot = NULL;
    pthread_mutex_lock(&f->lock);
    if (f->ended) goto out;
    keel_tuner_asks(f);
    slot = keel_feed_slot(f, f->next_out);
    if (slot->state == KEEL_SLOT_HELD) {
        s = keel_fail(KEEL_EARG, "feed: all %d batches are held; release one first", f->n_slots);
        goto out;
    }
    keel_watchdog_begin(f->watchdog);
    s = f->source->next ? keel_feed_stream_next(f, &slot) : keel_feed_rows_next(f, &slot);
    keel_watchdog_end(f->watchdog);
    if (s == KEEL_END) f->ended = true;
    if (s != KEEL_OK) goto out;
    slot->state = KEEL_SLOT_HELD;
    slot->batch.slot = (int)(slot - f->slots);
    f->next_out++;
    f->step++;
    *out = slot->batch;
out:
    pthread_mutex_unlock(&f->lock);
    keel_tuner_say(f);
    return s;
}

/* A stream's next item may be the end of the epoch, or belong to the next one. */
bool keel_feed_peek(keel_feed *f, keel_batch *out)
{
    if (!f->begun || f->shared) return false;
    pthread_mutex_lock(&f->lock);
    keel_slot *s = keel_feed_slot(f, f->next_out);
    const bool more = f->source->next || f->step < keel_feed_plan_steps(&f->plan, f->epoch);
    if (more && !f->ended) keel_feed_prepare(f, s);
    const bool there = more && !f->ended && s->state == KEEL_SLOT_READY && !s->failed &&
                       !s->is_end && s->batch.epoch == f->epoch;
    if (there) {
        *out = s->batch;
        out->slot = (int)(s - f->slots);
    }
    pthread_mutex_unlock(&f->lock);
    return there;
}

void keel_feed_release(keel_feed *f, const keel_batch *b)
{
    pthread_mutex_lock(&f->lock);
    assert(f->slots[b->slot].state == KEEL_SLOT_HELD);
    f->slots[b->slot].state = KEEL_SLOT_FREE;
    if (f->n_threads) pthread_cond_signal(&f->work_ready);
    pthread_mutex_unlock(&f->lock);
}

void keel_feed_retry(keel_feed *f, const keel_batch *b)
{
    pthread_mutex_lock(&f->lock);
    assert(keel_feed_slot(f, f->next_out - 1) == &f->slots[b->slot]);
    assert(f->slots[b->slot].state == KEEL_SLOT_HELD);
    f->slots[b->slot].state = KEEL_SLOT_READY;
    f->next_out--;
    f->step--;
    f->ended = false;
    pthread_mutex_unlock(&f->lock);
}
