/* What a feed tells of itself: fields, steps, rows, memory, threads. */
#include "data/feed_impl.h"
#include "data/flow.h"
#include "data/iter.h"
#include "data/pool.h"
#include <stdio.h>
#include <string.h>

int keel_feed_field_count(const keel_feed *f)
{
    return f->n_field;
}

const keel_data_field *keel_feed_field(const keel_feed *f, int i)
{
    return i >= 0 && i < f->n_field ? &f->field[i] : NULL;
}

const char *keel_batch_place(const keel_batch *b, char out[KEEL_BATCH_PLACE_MAX])
{
    const long long n = (long long)b->step + 1;
    if (b->untrained)
        snprintf(out, KEEL_BATCH_PLACE_MAX, "batch %lld", n);
    else
        snprintf(out, KEEL_BATCH_PLACE_MAX, "step %lld of epoch %lld", n, (long long)b->epoch + 1);
    return out;
}

const void *keel_batch_field(const keel_batch *b, keel_data_role role, int nth)
{
    for (int i = 0; i < b->n_field; i++)
        if (b->field[i] && b->spec[i].role == role && nth-- == 0) return b->field[i];
    return NULL;
}

const void *keel_batch_weights(const keel_batch *b)
{
    for (int i = 0; i < b->n_field; i++)
        if (b->field[i] && b->spec[i].role == KEEL_ROLE_WEIGHT && !b->spec[i].target)
            return b->field[i];
    return NULL;
}

int64_t keel_feed_steps(const keel_feed *f)
{
    if (f->planned) return keel_feed_plan_steps(&f->plan, f->epoch);
    const int64_t asked = f->o.steps_per_epoch, has = f->spec->yields;
    const bool wraps = f->o.end == KEEL_WRAP && !f->spec->batched;
    if (f->o.batch_size || has < 0 || wraps) /* the data may end before `asked` */
        return asked ? asked : has >= 0 && !f->o.batch_size ? has : -1;
    return asked && asked < has ? asked : has;
}

int64_t keel_feed_rows(const keel_feed *f)
{
    if (f->batched) return -1;
    if (f->planned) return keel_feed_plan_rows(&f->plan, f->epoch);
    return f->o.steps_per_epoch ? -1 : f->dataset->rows;
}

int64_t keel_feed_max_rows(const keel_feed *f)
{
    return f->max_rows;
}

/* The rows of the last batch of the data, which may be a short one. */
static int64_t last_batch(const keel_feed *f)
{
    keel_position at = { .seed = f->o.seed, .index = f->dataset->rows - 1 };
    const keel_applied *s = keel_stage_of_batch(f->dataset, &at);
    return s->stage->batch_rows(s, at);
}

int keel_feed_row_counts(const keel_feed *f, int64_t *counts, int max, bool *complete)
{
    int64_t all[2] = { f->max_rows };
    int n = 1;
    bool known = true;
    if (f->batched) {
        all[1] = last_batch(f);
        n = all[1] == all[0] ? 1 : 2;
        known = f->dataset->origin->applied->stage->batch_rows != NULL;
    } else if (f->planned) {
        n = keel_feed_plan_counts(&f->plan, all);
    } else if (!f->o.batch_size && f->dataset->rows >= 0) { /* full batches and a short one */
        const int64_t tail = f->dataset->rows % f->max_rows;
        if (f->dataset->rows < f->max_rows) n = 0;
        if (tail) all[n++] = tail;
    } else {
        known = f->o.batch_size && (f->spec->endless || f->o.end == KEEL_DROP ||
                                    f->o.end == KEEL_WRAP || f->o.end == KEEL_REFUSE);
    }
    if (complete) *complete = known && n <= max;
    if (n > max) n = max;
    for (int i = 0; i < n; i++) counts[i] = all[i];
    return n;
}

const char *keel_feed_note(keel_feed *f)
{
    char text[sizeof f->note];
    keel_stage_note(f->dataset, text, sizeof text); /* "" of a source */
    if (*text) memcpy(f->note, text, sizeof text);
    return f->note[0] ? f->note : NULL;
}

int64_t keel_feed_bytes(const keel_feed *f)
{
    int64_t n = 0;
    if (!f->staged) return f->n_slots * f->max_rows * f->row_bytes;
    for (int i = 0; i < f->n_slots; i++)
        for (int k = 0; k < f->n_field; k++)
            n += (int64_t)__atomic_load_n(&f->slots[i].own->room[k], __ATOMIC_RELAXED);
    return n;
}

int64_t keel_feed_refused(const keel_feed *f)
{
    return f ? f->refused : 0;
}

keel_ledger *keel_feed_ledger(keel_feed *f)
{
    return &f->ledger;
}

double keel_feed_wait_seconds(const keel_feed *f)
{
    return f->waited;
}

const keel_work *keel_feed_work(const keel_feed *f)
{
    return f->work;
}

int keel_feed_threads(const keel_feed *f)
{
    return f->flow ? keel_pool_used(keel_flow_run(f->flow)->pool) : f->n_used;
}

bool keel_feed_is_stream(const keel_feed *f)
{
    return f->flow != NULL;
}

const keel_account *keel_feed_account(const keel_feed *f)
{
    return f->o.account;
}

int keel_feed_slots(const keel_feed *f)
{
    return f->n_slots;
}
