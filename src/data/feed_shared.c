/* Streams that process 0 reads for all (feed_shared.h). In process 0 the stream engine fills slots
 * as it does alone; in the others slots are filled here, by the consumer. Before each batch all
 * agree on what comes: a batch with its numbers, the end of the epoch, a failure of process 0 with
 * its text, or nothing yet, so that slow data does not look like a lost process.
 *
 * Rows travel as they are in a batch: converted, padded, looked up and weighted, each field by one
 * exchange straight from slot to slot. */
#include "base/memory.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

enum { KIND, ROWS, DUPLICATES, FIRST_ROW, EPOCH, STEP, WEIGHT_LOW, WEIGHT_HIGH, SAID };
enum { BATCH, END, NOT_YET };
_Static_assert((int)SAID <= (int)KEEL_SHARED_NUMBERS, "numbers of a batch");

/* ---- what process 0 has ---------------------------------------------------------------------- */

/* Locked. Waits a while for the next item of the stream; false: it is not there yet. */
static bool is_ready_soon(keel_feed *f, double seconds)
{
    keel_slot *s = keel_feed_slot(f, f->next_out);
    if (f->ended || s->state == KEEL_SLOT_HELD) return true;
    if (s->state == KEEL_SLOT_TOLD) {
        s->state = KEEL_SLOT_FILLING;
        pthread_cond_broadcast(&f->work_ready);
    }
    f->wait_until = keel_clock_ns() + (int64_t)(seconds * 1e9);
    keel_feed_wait(f, s);
    f->wait_until = 0;
    return s->state == KEEL_SLOT_READY;
}

/* Until the next item is there, the others are told now and then that this process lives. */
static keel_status await_item(keel_feed *f)
{
    const keel_feed_share *x = &f->share;
    keel_status s = KEEL_OK;
    bool ready = false;
    pthread_mutex_lock(&f->lock);
    keel_watchdog_begin(f->watchdog);
    while (s >= 0 && !ready) {
        int64_t number[KEEL_SHARED_NUMBERS] = { [KIND] = NOT_YET };
        ready = is_ready_soon(f, x->patience / 4);
        if (!ready && keel_watchdog_is_over(f->watchdog)) {
            s = keel_watchdog_fail(f->watchdog);
        } else if (!ready) {
            pthread_mutex_unlock(&f->lock);
            s = x->agree(x->context, KEEL_OK, number);
            pthread_mutex_lock(&f->lock);
        }
    }
    keel_watchdog_end(f->watchdog);
    pthread_mutex_unlock(&f->lock);
    return s;
}

/* ---- agreements ------------------------------------------------------------------------------ */

static void put_batch(int64_t *number, const keel_batch *b)
{
    uint64_t weight;
    memcpy(&weight, &b->weight_sum, sizeof weight);
    number[ROWS] = b->rows;
    number[DUPLICATES] = b->duplicates;
    number[FIRST_ROW] = (int64_t)b->first_row;
    number[EPOCH] = b->epoch;
    number[STEP] = b->step;
    number[WEIGHT_LOW] = (int64_t)(weight & UINT32_MAX);
    number[WEIGHT_HIGH] = (int64_t)(weight >> 32);
}

static keel_status take_batch(const keel_feed *f, const int64_t *number, keel_batch *b)
{
    const uint64_t weight = (uint64_t)number[WEIGHT_HIGH] << 32 | (uint64_t)number[WEIGHT_LOW];
    if (number[ROWS] < 1 || number[ROWS] > f->max_rows || number[DUPLICATES] < 0 ||
        number[DUPLICATES] > number[ROWS] || number[EPOCH] < 0 || number[EPOCH] > UINT32_MAX)
        return keel_fail(KEEL_EREMOTE, "%s: process 0 sent a batch of %lld rows; at most %lld fit",
                         keel_dataset_name(f->dataset), (long long)number[ROWS],
                         (long long)f->max_rows);
    b->rows = number[ROWS];
    b->duplicates = number[DUPLICATES];
    b->first_row = (uint64_t)number[FIRST_ROW];
    b->epoch = (uint32_t)number[EPOCH];
    b->step = number[STEP];
    b->untrained = f->o.untrained;
    memcpy(&b->weight_sum, &weight, sizeof weight);
    return KEEL_OK;
}

/* What comes next, in every process. KEEL_END: the epoch is over. */
static keel_status agree_on_item(const keel_feed *f, keel_status mine, int64_t *number)
{
    const keel_feed_share *x = &f->share;
    do {
        number[KIND] = mine == KEEL_END ? END : BATCH;
        KEEL_TRY(x->agree(x->context, mine == KEEL_END ? KEEL_OK : mine, number));
    } while (number[KIND] == NOT_YET); /* process 0 comes here when it is ready */
    return number[KIND] == END ? KEEL_END : KEEL_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Texts stay where they are read: steps see what was looked up by them. */
static bool travels(const keel_feed *f, const keel_slot *s, int i)
{
    return s->at[i] && f->want[i] != KEEL_STRING;
}

/* Process 0 says what shapes the fields of this batch have. */
static keel_status share_shapes(const keel_feed *f, keel_slot *s)
{
    const keel_feed_share *x = &f->share;
    int64_t dim[KEEL_FIELDS_MAX][KEEL_RANK_MAX] = { { 0 } };
    keel_status r = KEEL_OK;
    if (!s->own) return KEEL_OK;
    for (int i = 0; i < f->n_field && !f->remote; i++)
        memcpy(dim[i], s->own->field[i].shape.dim, sizeof dim[i]);
    KEEL_TRY(x->broadcast(x->context, dim, sizeof dim));
    for (int i = 0; i < f->n_field && f->remote && r >= 0; i++) {
        keel_shape shape = f->field[i].shape;
        memcpy(shape.dim, dim[i], (size_t)shape.rank * sizeof *shape.dim);
        if (travels(f, s, i)) r = keel_feed_reshape(f, s, i, &shape, s->batch.rows);
    }
    int64_t number[KEEL_SHARED_NUMBERS] = { 0 };
    return x->agree(x->context, r, number); /* one may have no room */
}

static keel_status share_rows(const keel_feed *f, keel_slot *s)
{
    const keel_feed_share *x = &f->share;
    keel_batch *b = &s->batch;
    KEEL_TRY(share_shapes(f, s));
    for (int i = 0; i < f->n_field; i++) {
        if (!travels(f, s, i)) continue;
        const bool reads = !f->remote;
        void *data = reads ? (void *)b->field[i] : s->at[i];
        KEEL_TRY(x->scatter(x->context, b->rows, data, s->bytes[i]));
        if (!reads) b->field[i] = data;
    }
    return KEEL_OK;
}

/* The next batch of another process, into the next slot. */
static keel_status receive(keel_feed *f, const int64_t *number, keel_slot **slot)
{
    keel_slot *s = *slot = keel_feed_slot(f, f->next_out);
    if (s->state == KEEL_SLOT_HELD)
        return keel_fail(KEEL_EARG, "feed: all %d batches are held; release one first", f->n_slots);
    s->batch = (keel_batch){ .n_field = f->n_field, .spec = s->field };
    KEEL_TRY(take_batch(f, number, &s->batch));
    f->share.rows_of(f->share.context, s->batch.rows, f->share.process, &s->batch.first,
                     &s->batch.end);
    s->state = KEEL_SLOT_READY;
    return KEEL_OK;
}

/* ---- the consumer ---------------------------------------------------------------------------- */

keel_status keel_feed_shared_begin(keel_feed *f, uint32_t epoch)
{
    int64_t number[KEEL_SHARED_NUMBERS] = { 0 };
    keel_status s = KEEL_OK;
    if (!f->remote) {
        pthread_mutex_lock(&f->lock);
        keel_feed_stream_enter(f, epoch);
        pthread_mutex_unlock(&f->lock);
        if (f->spec->one_shot) s = await_item(f);
        pthread_mutex_lock(&f->lock);
        if (s >= 0) s = keel_feed_stream_first(f);
        pthread_mutex_unlock(&f->lock);
    }
    s = agree_on_item(f, s, number);
    if (s < 0 || !f->remote) return s; /* the stream engine has begun */
    f->begun = true;
    f->ended = false;
    f->epoch = epoch;
    f->step = 0;
    return KEEL_OK;
}

keel_status keel_feed_shared_next(keel_feed *f, keel_batch *out)
{
    int64_t number[KEEL_SHARED_NUMBERS] = { 0 };
    keel_status s = KEEL_OK;
    keel_slot *slot = NULL;
    const int64_t begin = keel_clock_ns();
    if (f->ended) return KEEL_END; /* in all processes */
    if (!f->remote) {
        s = await_item(f);
        if (s >= 0) s = keel_feed_next_own(f, out);
        if (s == KEEL_OK) {
            slot = &f->slots[out->slot];
            put_batch(number, out);
        }
    }
    s = agree_on_item(f, s, number);
    if (s == KEEL_END && f->remote) f->ended = true;
    if (s == KEEL_OK && f->remote) s = receive(f, number, &slot);
    if (s == KEEL_OK && !f->passes_over) s = share_rows(f, slot);
    if (f->remote) f->waited += 1e-9 * (double)(keel_clock_ns() - begin);
    if (s < 0 && slot && !f->remote) keel_feed_retry(f, out); /* another process has failed */
    if (s != KEEL_OK || !f->remote) return s;
    slot->state = KEEL_SLOT_HELD;
    slot->batch.slot = (int)(slot - f->slots);
    f->next_out++;
    f->step++;
    *out = slot->batch;
    return KEEL_OK;
}
