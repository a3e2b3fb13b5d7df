/* Measures the cost of reproducible steps; see keel_plan_measure in keel/train.h. Steps on made-up
 * rows alternate with and without shards, so that other load on the machine slows both. */
#include "base/ascending.h"
#include "base/clock.h"
#include "base/memory.h"
#include "train/made_rows.h"
#include "train/step.h"
#include <stdlib.h>

enum { WARM = 2, LEAST = 3, MOST = 25 };
#define ENOUGH_SECONDS 2.0

typedef struct side {
    keel_strategy strategy; /* own lanes, the caller's team */
    keel_trainer *trainer;
    keel_tally tally; /* of steps that nobody asks for */
    double took[MOST];
} side;

typedef struct cost {
    keel_made_rows made;
    side side[2]; /* with shards, without shards */
} cost;

static keel_status step(const cost *c, side *s, double *seconds)
{
    const double begin = keel_seconds();
    KEEL_TRY(keel_made_rows_step(&c->made, s->trainer, &s->tally));
    *seconds = keel_seconds() - begin;
    return KEEL_OK;
}

static keel_status run(cost *c, double median[2])
{
    const double begin = keel_seconds();
    double ignored;
    int n = 0;
    for (int i = 0; i < WARM; i++)
        for (int k = 0; k < 2; k++) KEEL_TRY(step(c, &c->side[k], &ignored));
    for (; n < LEAST || (n < MOST && keel_seconds() - begin < ENOUGH_SECONDS); n++)
        for (int k = 0; k < 2; k++) KEEL_TRY(step(c, &c->side[k], &c->side[k].took[n]));
    for (int k = 0; k < 2; k++) {
        keel_sort_ascending(c->side[k].took, n);
        median[k] = c->side[k].took[n / 2];
    }
    return KEEL_OK;
}

static keel_status measure(cost *c, keel_model *m, const keel_strategy *s, int64_t rows,
                           const keel_shape *inputs, double median[2])
{
    const keel_trainer_options options = { 0 };
    KEEL_TRY(keel_made_rows_make(&c->made, m, rows, rows, inputs));
    for (int k = 0; k < 2; k++) {
        side *x = &c->side[k];
        const keel_trainer_work train = { &c->made.pairing, rows }, none = { 0 };
        x->strategy = *s;
        if (k == 1) x->strategy.lanes.shards = 0;
        KEEL_TRY(keel_trainer_create(&x->trainer, m, &x->strategy, &train, &none, &options));
        KEEL_TRY(keel_made_rows_check(x->trainer->train.program->graph));
        KEEL_TRY(keel_trainer_prepare(&x->trainer->train, &rows, 1));
        KEEL_TRY(keel_tally_create(&x->tally, &x->trainer->train));
    }
    return run(c, median);
}

keel_status keel_plan_measure(keel_plan *p, keel_model *m, keel_strategy *s,
                              const keel_shape *inputs)
{
    double median[2] = { 0 };
    keel_status status = KEEL_ENOMEM;
    const int64_t rows =
        p->steps * p->batch_size > p->rows && p->rows < p->batch_size ? p->rows : p->batch_size;
    if (!s->lanes.shards) return keel_fail(KEEL_EARG, "the strategy is not reproducible");
    cost *c = keel_calloc(1, sizeof *c);
    if (!c) return status;
    const keel_row_states kept = m->row_states; /* as they were, after the made-up rows, too */
    m->row_states = (keel_row_states){ 0 };
    keel_team_enter(s->team);
    status = measure(c, m, s, rows, inputs, median);
    keel_team_leave(s->team);
    for (int k = 0; k < 2; k++) {
        keel_tally_free(&c->side[k].tally);
        keel_trainer_destroy(c->side[k].trainer);
    }
    keel_row_states_free(&m->row_states);
    m->row_states = kept;
    keel_made_rows_free(&c->made);
    keel_free(c);
    if (status < 0) return status;
    p->reproducible_seconds = median[0];
    p->plain_seconds = median[1];
    return KEEL_OK;
}
