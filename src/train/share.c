/* See keel/share.h. The speed of a kind of devices is measured twice: with the rows of an equal
 * part, and with those of the part that follows from that, since a GPU is faster with more rows. */
#include "keel/share.h"
#include "base/clock.h"
#include "base/memory.h"
#include "train/made_rows.h"
#include "train/step.h"
#include "train/strategy.h"
#include <math.h>
#include <string.h>

enum { ROUNDS = 2, LEAST = 3, MOST = 15 };
#define ENOUGH_SECONDS 0.25

/* ---- given ----------------------------------------------------------------------------------- */

/* The first lane without one of so many parts, which are shards or rows; -1: each has one. */
static int without_part(const keel_lanes *l, int64_t parts)
{
    const int all = l->shares_before[l->n_lane];
    for (int i = 0; parts && keel_lanes_unequal(l) && i < l->n_lane; i++)
        if (keel_cut_first(parts, all, l->shares_before[i]) ==
            keel_cut_first(parts, all, l->shares_before[i + 1]))
            return i;
    return -1;
}

keel_status keel_strategy_check_shares(const keel_lanes *l, int shards)
{
    const int lane = without_part(l, shards);
    char name[64];
    if (lane < 0) return KEEL_OK;
    keel_lane_name(name, l, lane);
    return keel_fail(KEEL_EARG,
                     "with a share of %d of %d, %s has none of the %d shards of a reproducible "
                     "step; give it a larger share, or take more shards",
                     keel_lanes_share_of(l, lane), l->shares_before[l->n_lane], name, shards);
}

keel_status keel_strategy_share(keel_strategy *s, const int *share, int n)
{
    keel_lanes lanes = s->lanes;
    KEEL_TRY(keel_lanes_share(&lanes, share, n));
    KEEL_TRY(keel_strategy_check_shares(&lanes, lanes.shards));
    s->lanes = lanes;
    return KEEL_OK;
}

int keel_strategy_share_of(const keel_strategy *s, int device)
{
    return device >= 0 && device < s->lanes.n_lane ? keel_lanes_share_of(&s->lanes, device) : 0;
}

/* ---- measured -------------------------------------------------------------------------------- */

static keel_device *device_of(const keel_lanes *l, int lane)
{
    return l->device[l->part[l->lane[lane].first_part].worker];
}

static bool same_kind(const keel_lanes *l, int a, int b)
{
    const keel_device *x = device_of(l, a), *y = device_of(l, b);
    if (!x || !y) return !x && !y && l->lane[a].n_core == l->lane[b].n_core;
    return x->type == y->type && !strcmp(x->kind, y->kind);
}

/* The first lane of its kind. */
static int first_of_kind(const keel_lanes *l, int lane)
{
    for (int i = 0; i < lane; i++)
        if (same_kind(l, i, lane)) return i;
    return lane;
}

static keel_status time_steps(keel_trainer *t, const keel_made_rows *made, keel_tally *tally,
                              double *seconds)
{
    double best = HUGE_VAL, sum = 0;
    for (int k = 0; k <= LEAST || (k <= MOST && sum < ENOUGH_SECONDS); k++) {
        const double begin = keel_seconds();
        KEEL_TRY(keel_made_rows_step(made, t, tally));
        const double took = keel_seconds() - begin;
        if (k == 0) continue; /* it also copies the weights there */
        sum += took;
        if (took < best) best = took;
    }
    *seconds = best;
    return KEEL_OK;
}

/* Rows a second of one lane in steps of so many rows. */
static keel_status measure(const keel_strategy *s, int lane, keel_model *m, int64_t rows,
                           const keel_shape *inputs, double *speed)
{
    const keel_trainer_options options = { 0 };
    keel_trainer_work train = { NULL, rows }, none = { 0 };
    keel_strategy *one = NULL;
    keel_trainer *t = NULL;
    keel_tally tally = { 0 };
    double seconds = 0;
    keel_made_rows *made = keel_calloc(1, sizeof *made);
    if (!made) return KEEL_ENOMEM;
    keel_row_states_free(&m->row_states); /* of the rows of another lane */
    keel_model_set_batch(m, rows);
    keel_status status = keel_made_rows_make(made, m, rows, rows, inputs);
    train.pairing = &made->pairing;
    if (status >= 0) status = keel_strategy_create_lane(&one, s, lane);
    if (status >= 0) {
        keel_team_enter(one->team);
        status = keel_trainer_create(&t, m, one, &train, &none, &options);
        if (status >= 0) status = keel_made_rows_check(t->train.program->graph);
        if (status >= 0) status = keel_trainer_prepare(&t->train, &rows, 1);
        if (status >= 0) status = keel_tally_create(&tally, &t->train);
        if (status >= 0) status = time_steps(t, made, &tally, &seconds);
        keel_team_leave(one->team);
    }
    keel_tally_free(&tally);
    keel_trainer_destroy(t);
    keel_strategy_destroy(one);
    keel_made_rows_free(made);
    keel_free(made);
    if (status >= 0) *speed = (double)rows / fmax(seconds, 1e-9);
    return status;
}

/* The fastest has the most, and each at least one shard, or one of so many rows. */
static keel_status share_by(keel_strategy *s, const double *speed, int64_t rows)
{
    const int n = s->lanes.n_lane;
    int share[KEEL_LANES_MAX], without;
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, speed[i]);
    for (int i = 0; i < n; i++) {
        share[i] = (int)lround(KEEL_SHARE_MAX * speed[i] / most);
        if (share[i] < 1) share[i] = 1;
    }
    keel_lanes lanes = s->lanes;
    KEEL_TRY(keel_lanes_share(&lanes, share, n));
    const int64_t parts = lanes.shards ? lanes.shards : rows;
    while ((without = without_part(&lanes, parts)) >= 0 && share[without] < KEEL_SHARE_MAX) {
        share[without]++;
        KEEL_TRY(keel_lanes_share(&lanes, share, n));
    }
    return keel_strategy_share(s, share, n);
}

static keel_status measure_kinds(keel_strategy *s, keel_model *m, int64_t rows,
                                 const keel_shape *inputs)
{
    const keel_lanes *l = &s->lanes;
    double speed[KEEL_LANES_MAX];
    const int64_t all = keel_lanes_unequal(l) ? l->shares_before[l->n_lane] : l->n_lane;
    for (int i = 0; i < l->n_lane; i++) {
        const int64_t own = keel_div_up(rows * keel_lanes_share_of(l, i), all);
        const int first = first_of_kind(l, i);
        if (first < i)
            speed[i] = speed[first];
        else
            KEEL_TRY(measure(s, i, m, own, inputs, &speed[i]));
    }
    return share_by(s, speed, rows);
}

keel_status keel_strategy_share_by_speed(keel_strategy *s, keel_model *m, int64_t rows,
                                         const keel_shape *inputs)
{
    bool alike = true;
    KEEL_TRY(keel_strategy_share(s, NULL, 0));
    if (s->lanes.n_process > 1)
        return keel_fail(KEEL_EUNSUP,
                         "unequal shares of the devices of several processes are not there yet; "
                         "leave the shares out");
    if (rows < 1) return keel_fail(KEEL_EARG, "a step of %lld rows", (long long)rows);
    for (int i = 1; i < s->lanes.n_lane; i++) alike = alike && first_of_kind(&s->lanes, i) == 0;
    if (alike || s->lanes.shared) return KEEL_OK; /* shared lanes run at the speed of their cores */
    const keel_row_states kept = m->row_states;   /* as they were, after the made-up rows, too */
    const int64_t batch = keel_model_batch(m);
    m->row_states = (keel_row_states){ 0 };
    keel_status status = KEEL_OK;
    for (int k = 0; k < ROUNDS && status >= 0; k++) status = measure_kinds(s, m, rows, inputs);
    keel_row_states_free(&m->row_states);
    m->row_states = kept;
    keel_model_set_batch(m, batch);
    if (status < 0) (void)keel_lanes_share(&s->lanes, NULL, 0);
    return status;
}
