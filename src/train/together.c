/* See together.h. */
#include "train/together.h"
#include "graph/buckets.h"
#include "train/mover.h"
#include <inttypes.h>
#include <stdio.h>

/* ---- before a step --------------------------------------------------------------------------- */

enum { EPOCH, STEP, ROWS, CONTENTS, SET, STOPS, SAID };

static keel_status differ(const keel_comm *c, int q, const int64_t *mine, const int64_t *theirs,
                          bool own_step)
{
    char name[KEEL_COMM_NAME_MAX];
    keel_comm_name(c, q, name);
    if (own_step)
        return keel_fail(KEEL_EDATA,
                         "run %" PRId64 " of %" PRId64 " rows: %s, at its run %" PRId64
                         " of %" PRId64 " rows, has another step, other inputs, weights or "
                         "learning rates than process %d, or another state of its optimizers, or "
                         "sends gradients in another type; all must run the same on the same",
                         mine[STEP] + 1, mine[ROWS], name, theirs[STEP] + 1, theirs[ROWS],
                         c->group.rank);
    if (mine[SET] != theirs[SET])
        return keel_fail(KEEL_ECALLBACK,
                         "callbacks of %s have set other weights or another learning rate than "
                         "those of process %d; they must set the same in all processes",
                         name, c->group.rank);
    if ((mine[ROWS] < 0) != (theirs[ROWS] < 0))
        return keel_fail(KEEL_EDATA,
                         "the data of %s ends at another step than that of process %d; "
                         "all processes must have the same data",
                         mine[ROWS] < 0 ? "this process" : name,
                         mine[ROWS] < 0 ? q : c->group.rank);
    return keel_fail(KEEL_EDATA,
                     "process %d is at epoch %" PRId64 ", step %" PRId64 " of %" PRId64 " rows, %s "
                     "at epoch %" PRId64 ", step %" PRId64 " of %" PRId64
                     " rows; all must have the same data and options",
                     c->group.rank, mine[EPOCH] + 1, mine[STEP] + 1, mine[ROWS], name,
                     theirs[EPOCH] + 1, theirs[STEP] + 1, theirs[ROWS]);
}

keel_status keel_together_begin(keel_strategy *s, keel_status mine, const keel_batch *b,
                                uint64_t set, keel_stops *stops)
{
    keel_comm *c = s->comm;
    if (!c) return mine < 0 ? mine : KEEL_OK;
    if (mine < 0 && c->told) return mine; /* as by the feed of a stream */
    const int64_t say[SAID] = { [EPOCH] = b ? (int64_t)b->epoch : 0,
                                [STEP] = b ? (int64_t)b->step : 0,
                                [ROWS] = b ? b->rows : -1,
                                [CONTENTS] = b ? (int64_t)b->contents : 0,
                                [SET] = (int64_t)set,
                                [STOPS] = *stops };
    KEEL_TRY(keel_comm_agree(c, mine, say, SAID, NULL));
    for (int q = 0; q < c->group.count; q++) {
        const int64_t *theirs = keel_comm_said(c, q);
        if (theirs[STOPS] > (int64_t)*stops) *stops = (keel_stops)theirs[STOPS];
    }
    for (int q = 0; q < c->group.count; q++)
        for (int i = 0; i < STOPS; i++)
            if (keel_comm_said(c, q)[i] != say[i]) {
                c->told = true; /* all see it */
                return differ(c, q, say, keel_comm_said(c, q), b && b->contents);
            }
    return *stops ? KEEL_END : KEEL_OK;
}

keel_status keel_strategy_leave(keel_strategy *s, keel_status mine)
{
    keel_failure f;
    if (!s->comm) return mine;
    const bool told = s->comm->told;
    s->comm->told = false; /* of the next run nothing is told */
    if (mine >= 0 || told || s->comm->lost) return mine;
    keel_failure_take(&f, mine);
    keel_comm_agree(s->comm, mine, (int64_t[SAID]){ 0 }, SAID, NULL);
    s->comm->told = false;
    return keel_failure_raise(&f);
}

/* ---- after the rows -------------------------------------------------------------------------- */

typedef struct asking {
    const keel_trainer *t;
    const keel_score *score;
} asking;

typedef struct summing {
    keel_trainer *t;
    keel_program *p;
} summing;

/* The worker of the step's first rows that has failed by itself; else one without rows that has;
 * else one that has waited for another in vain. -1: none has failed. *lane: a lane of it. */
static int failed_worker(const keel_trainer *t, const keel_program *p, int *lane)
{
    const keel_lanes *l = &t->strategy->lanes;
    const int n_busy = t->bound->n_busy;
    int waited = -1;
    for (int i = 0; i < n_busy + l->n_part; i++) {
        const keel_piece *piece = i < n_busy ? &t->bound->piece[i] : NULL;
        const keel_lane_part *part = piece ? &l->part[piece->part] : &l->part[i - n_busy];
        const keel_status s = p->failure[part->worker].status;
        if (s >= 0 || (s == KEEL_EREMOTE && waited >= 0)) continue;
        *lane = part->lane;
        if (s != KEEL_EREMOTE) return part->worker;
        waited = part->worker;
    }
    return waited;
}

keel_status keel_together_failure(const keel_trainer *t, const keel_program *p)
{
    char place[KEEL_BATCH_PLACE_MAX];
    int lane = 0;
    if (t->common.status < 0) return keel_failure_raise(&t->common);
    const int w = failed_worker(t, p, &lane);
    if (w < 0) return KEEL_OK;
    return keel_fail_within(keel_failure_raise(&p->failure[w]), "%s, device %s",
                            keel_batch_place(t->batch, place), t->strategy->name[lane]);
}

static keel_status exchange_sums(const keel_trainer *t, const keel_program *p)
{
    KEEL_TRY(keel_sums_exchange(p, t->bound));
    return keel_across_carry(p, t->bound);
}

static keel_status share_sums(void *context)
{
    const summing *x = context;
    keel_trainer *t = x->t;
    keel_comm *c = t->strategy->comm;
    int64_t bad[KEEL_PROCESSES_MAX];
    const int64_t own = keel_program_bad_row(x->p);
    keel_status s = keel_together_failure(t, x->p);
    if (s == KEEL_OK)
        s = exchange_sums(t, x->p);
    else if (!c->lost) {
        keel_failure f;
        keel_failure_take(&f, s);
        exchange_sums(t, x->p); /* the others wait for it; the values do not count */
        s = keel_failure_raise(&f);
    }
    s = keel_comm_agree(c, s, &own, 1, bad);
    if (x->p->across->buckets) {
        keel_failure f = { 0 };
        if (s < 0) keel_failure_take(&f, s);
        const keel_status ended = keel_buckets_finish(x->p, t->bound);
        s = f.status < 0 ? keel_failure_raise(&f) : ended;
    }
    t->common = (keel_failure){ 0 };
    t->bad_row = -1;
    if (s < 0) {
        keel_failure_take(&t->common, s);
        return s;
    }
    for (int q = c->group.count - 1; q >= 0; q--)
        if (bad[q] >= 0) t->bad_row = bad[q];
    return KEEL_OK;
}

void keel_together_sum(keel_trainer *t, bool test, int worker)
{
    const keel_scored *s = test ? &t->test : &t->train;
    keel_program_meet_across(s->program, t->strategy->team, worker, share_sums,
                             &(summing){ t, s->program });
}

/* ---- optimizers that ask -------------------------------------------------------------------- */

/* What `when` of each optimizer says is the same everywhere, or nothing moves. */
static keel_status ask(void *context)
{
    const asking *x = context;
    keel_comm *c = x->t->strategy->comm;
    int64_t rests = 0, all[KEEL_PROCESSES_MAX];
    char name[KEEL_COMM_NAME_MAX];
    keel_movers_ask(x->t, x->score);
    for (int k = 0; k < x->t->n_mover; k++)
        rests = (int64_t)((uint64_t)rests * 3 + (uint64_t)x->t->mover[k].rests);
    KEEL_TRY(keel_comm_agree(c, KEEL_OK, &rests, 1, all));
    for (int q = 0; q < c->group.count; q++)
        if (all[q] != rests) {
            c->told = true; /* all see it */
            return keel_fail(KEEL_ECALLBACK,
                             "`when` of an optimizer says something else in %s than in process %d; "
                             "it must be a function of what it is given",
                             keel_comm_name(c, q, name), c->group.rank);
        }
    return KEEL_OK;
}

void keel_together_ask(const keel_trainer *t, const keel_score *score, int worker)
{
    keel_program_meet_across(t->train.program, t->strategy->team, worker, ask,
                             &(asking){ t, score });
}

/* ---- rows ------------------------------------------------------------------------------------ */

keel_status keel_together_same(keel_strategy *s, keel_status mine, uint64_t what)
{
    keel_comm *c = s->comm;
    const int64_t own = (int64_t)what;
    int64_t all[KEEL_PROCESSES_MAX];
    char name[KEEL_COMM_NAME_MAX];
    if (!c) return mine;
    KEEL_TRY(keel_comm_agree(c, mine, &own, 1, all));
    for (int q = 0; q < c->group.count; q++)
        if (all[q] != own)
            return keel_fail(KEEL_EARG,
                             "%s asks for something else than process %d; all processes must make "
                             "the same calls in the same order",
                             keel_comm_name(c, q, name), c->group.rank);
    return KEEL_OK;
}

keel_status keel_together_rows(keel_strategy *s, int64_t rows, void *data, int64_t bytes)
{
    keel_comm *c = s->comm;
    size_t at[KEEL_PROCESSES_MAX], size[KEEL_PROCESSES_MAX];
    if (!c) return KEEL_OK;
    for (int q = 0; q < c->group.count; q++) {
        int64_t first, end;
        keel_lanes_rows(&s->lanes, rows, q, &first, &end);
        at[q] = (size_t)(first * bytes);
        size[q] = (size_t)((end - first) * bytes);
    }
    return keel_comm_all_gather(c, data, at, size);
}

const char *keel_together_where(const keel_trainer *t, int64_t row, char out[KEEL_COMM_NAME_MAX])
{
    const keel_strategy *s = t->strategy;
    for (int i = 0; i < t->bound->n_busy; i++) {
        const keel_piece *piece = &t->bound->piece[i];
        if (row >= piece->row && row < piece->row + piece->rows) {
            snprintf(out, KEEL_COMM_NAME_MAX, "device %s", s->name[piece->lane]);
            return out;
        }
    }
    for (int q = 0; s->comm && q < s->comm->group.count; q++) {
        int64_t first, end;
        keel_lanes_rows(&s->lanes, t->bound->rows, q, &first, &end);
        if (row >= first && row < end) return keel_comm_name(s->comm, q, out);
    }
    return "no device";
}
