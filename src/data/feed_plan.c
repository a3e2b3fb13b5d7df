/* Computes the rows of each step of an epoch; see feed_plan.h. */
#include "data/feed_plan.h"
#include "base/memory.h"
#include "base/plural.h"
#include "base/round.h"
#include <stdio.h>

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

keel_status keel_feed_plan_init(keel_feed_plan *p, int64_t n, const keel_feed_options *o,
                                const char *name)
{
    const int64_t batch = o->batch_size, asked = o->steps_per_epoch;
    const long long rows = n, size = batch;
    *p = (keel_feed_plan){
        .n = n,
        .batch = batch,
        .steps_per_epoch = asked,
        .first_epoch = o->first_epoch,
        .epochs = o->epochs,
        .end = o->end,
    };
    p->pass_steps = o->end == KEEL_DROP ? n / batch : keel_div_up(n, batch);
    if (n < batch && (o->end == KEEL_DROP || o->end == KEEL_CARRY))
        return keel_fail(
            KEEL_EDATA,
            "%s: %lld row%s never fill%s a batch of %lld, and short batches are %s: use a "
            "batch size of at most %lld, or keep short batches",
            name, rows, keel_s(rows), rows == 1 ? "s" : "", size,
            o->end == KEEL_DROP ? "dropped" : "carried", rows);

    /* If batches may span passes, "smaller than the data" is counted in rows. */
    const bool spans = o->end == KEEL_CARRY || o->end == KEEL_WRAP;
    const bool smaller =
        asked > 0 && !o->anew && (spans ? asked < keel_div_up(n, batch) : asked < p->pass_steps);
    if (o->end == KEEL_CARRY)
        p->kind = smaller || (asked && n % batch == 0 && asked == n / batch) ? KEEL_PLAN_ROWS
                                                                             : KEEL_PLAN_CARRIED;
    else if (o->end == KEEL_WRAP)
        p->kind = asked ? KEEL_PLAN_ROWS : KEEL_PLAN_WHOLE;
    else
        p->kind = smaller ? KEEL_PLAN_STEPS : KEEL_PLAN_WHOLE;

    if (o->end == KEEL_REFUSE && n % batch) {
        int64_t needed;
        const bool reached = p->kind == KEEL_PLAN_WHOLE || !o->epochs ||
                             !keel_mul_i64(o->epochs, asked, &needed) || needed > n / batch;
        if (reached)
            return keel_fail(KEEL_EDATA,
                             "%s: %lld rows leave a last batch of %lld (batch size %lld), and the "
                             "end of the data is set to be an error",
                             name, rows, (long long)(n % batch), size);
    }
    return KEEL_OK;
}

bool keel_feed_plan_can_count(const keel_feed_plan *p, uint32_t epoch)
{
    int64_t rows, steps = p->pass_steps;
    if (p->steps_per_epoch > steps) steps = p->steps_per_epoch;
    return keel_mul_i64(steps, p->batch, &rows) &&
           keel_mul_i64(rows > p->n ? rows : p->n, (int64_t)epoch + 2, &rows);
}

/* KEEL_PLAN_CARRIED: the number of rows that were delivered before `epoch` begins. Nothing is left
 * over before first_epoch. */
static int64_t carried_begin(const keel_feed_plan *p, int64_t epoch)
{
    const int64_t first = p->first_epoch;
    return first * p->n + (epoch - first) * p->n / p->batch * p->batch;
}

static int64_t carried_end(const keel_feed_plan *p, int64_t epoch)
{
    return p->epochs && epoch == p->epochs - 1 ? (epoch + 1) * p->n : carried_begin(p, epoch + 1);
}

int64_t keel_feed_plan_steps(const keel_feed_plan *p, uint32_t epoch)
{
    int64_t steps = p->pass_steps;
    if (p->kind == KEEL_PLAN_STEPS || p->kind == KEEL_PLAN_ROWS) return p->steps_per_epoch;
    if (p->kind == KEEL_PLAN_CARRIED)
        steps = keel_div_up(carried_end(p, epoch) - carried_begin(p, epoch), p->batch);
    return p->steps_per_epoch ? min(steps, p->steps_per_epoch) : steps;
}

/* Rows before step `t` of the endless sequence of passes. */
static int64_t rows_before(const keel_feed_plan *p, int64_t t)
{
    const int64_t of_pass = p->end == KEEL_DROP ? p->pass_steps * p->batch : p->n;
    return t / p->pass_steps * of_pass + min(t % p->pass_steps * p->batch, of_pass);
}

int64_t keel_feed_plan_rows(const keel_feed_plan *p, uint32_t epoch)
{
    const int64_t steps = keel_feed_plan_steps(p, epoch);
    if (!steps) return 0;
    const keel_plan_step last = keel_feed_plan_step(p, epoch, steps - 1);
    return (int64_t)last.first_row + last.rows;
}

keel_plan_step keel_feed_plan_step(const keel_feed_plan *p, uint32_t epoch, int64_t step)
{
    keel_plan_step s = { .rows = p->batch, .pass = epoch };
    int64_t at = step * p->batch; /* rows since the begin of the epoch */
    switch (p->kind) {
    case KEEL_PLAN_WHOLE:
        s.position = at;
        if (p->end == KEEL_WRAP) {
            s.same_pass = true;
            if (at + p->batch > p->n) s.duplicates = at + p->batch - p->n;
        } else {
            s.rows = min(p->batch, p->n - at);
        }
        break;
    case KEEL_PLAN_STEPS: {
        const int64_t begin = (int64_t)epoch * p->steps_per_epoch, t = begin + step;
        s.pass = t / p->pass_steps;
        s.position = t % p->pass_steps * p->batch;
        s.rows = min(p->batch, p->n - s.position);
        at = rows_before(p, t) - rows_before(p, begin);
        break;
    }
    case KEEL_PLAN_ROWS: {
        const int64_t g = ((int64_t)epoch * p->steps_per_epoch + step) * p->batch;
        s.pass = g / p->n;
        s.position = g % p->n;
        if (p->end == KEEL_WRAP && at + p->batch > p->n)
            s.duplicates = min(p->batch, at + p->batch - p->n);
        break;
    }
    case KEEL_PLAN_CARRIED: {
        const int64_t g = carried_begin(p, epoch) + at;
        s.pass = g / p->n;
        s.position = g % p->n;
        s.rows = min(p->batch, carried_end(p, epoch) - g);
        break;
    }
    }
    s.first_row = (uint64_t)at;
    return s;
}

int keel_feed_plan_counts(const keel_feed_plan *p, int64_t counts[2])
{
    int n = 0;
    int64_t tail = 0, total = 0;
    if (p->kind == KEEL_PLAN_CARRIED) {
        if (p->epochs && keel_mul_i64(p->epochs - p->first_epoch, p->n, &total))
            tail = total % p->batch;
        counts[n++] = p->batch; /* n >= batch here */
    } else if (p->kind == KEEL_PLAN_ROWS || p->end == KEEL_WRAP) {
        counts[n++] = p->batch;
    } else {
        if (p->n >= p->batch) counts[n++] = p->batch;
        if (p->end == KEEL_KEEP) tail = p->n % p->batch;
        /* The last epoch may end before the first short batch, or each of them. */
        int64_t steps;
        if (p->kind == KEEL_PLAN_WHOLE && p->steps_per_epoch && p->steps_per_epoch < p->pass_steps)
            tail = 0;
        if (p->epochs && p->kind == KEEL_PLAN_STEPS && n &&
            keel_mul_i64(p->epochs, p->steps_per_epoch, &steps) && steps < p->pass_steps)
            tail = 0;
    }
    if (tail) counts[n++] = tail;
    return n;
}

void keel_feed_plan_note(const keel_feed_plan *p, const char *name, char *text, size_t size)
{
    text[0] = 0;
    const long long asked = p->steps_per_epoch, has = p->pass_steps, rows = p->n, batch = p->batch;
    const long long tail = p->n % p->batch;
    if ((p->kind == KEEL_PLAN_WHOLE || p->kind == KEEL_PLAN_CARRIED) && asked > has)
        snprintf(text, size,
                 "%s: %lld row%s make%s %lld step%s, not the %lld of steps_per_epoch: every epoch "
                 "ends early",
                 name, rows, keel_s(rows), rows == 1 ? "s" : "", has, keel_s(has), asked);
    else if (p->end == KEEL_DROP && tail)
        snprintf(text, size, "%s: the last %lld of %lld rows %s left out of every pass", name, tail,
                 rows, tail == 1 ? "is" : "are");
    else if (p->end == KEEL_WRAP && tail && p->kind == KEEL_PLAN_WHOLE)
        snprintf(text, size, "%s: %lld row%s taken twice to fill the last batch of every epoch",
                 name, batch - tail, batch - tail == 1 ? " is" : "s are");
    else if (p->end == KEEL_WRAP && asked > has)
        snprintf(text, size,
                 "%s: with this steps_per_epoch an epoch has the %lld row%s more than once", name,
                 rows, keel_s(rows));
}
