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

enum { UNITS_MOST = 1 << 22 }; /* of all processes */

/* The first lane without one of so many parts, which are shards or rows; -1: each has one. */
static int without_part(const keel_lanes *l, int64_t parts)
{
    for (int i = 0; parts && keel_lanes_unequal(l) && i < l->n_lane; i++)
        if (keel_cut_first(parts, l->all_units, l->first_unit + l->shares_before[i]) ==
            keel_cut_first(parts, l->all_units, l->first_unit + l->shares_before[i + 1]))
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
                     keel_lanes_share_of(l, lane), l->all_units, name, shards);
}

/* Each process tells the others how many units its lanes have; where one has other shares, those of
 * a process that has given none are 1. units: as keel_strategy.units_before. KEEL_END: nobody gives
 * any, and lanes have equal ones already. */
static keel_status share_among_all(const keel_strategy *s, keel_lanes *l, const int *share, int n,
                                   int *units)
{
    enum { TOLD = 2 };
    int ones[KEEL_LANES_MAX];
    int64_t all[TOLD * KEEL_PROCESSES_MAX], sum = 0;
    bool any = false;
    const int count = l->n_process;
    keel_lanes own = *l;
    const keel_status mine = keel_lanes_share(&own, share, n, NULL);
    const int64_t told[TOLD] = { mine < 0 ? 0 : own.all_units, share != NULL };
    KEEL_TRY(keel_comm_agree(s->comm, mine, told, TOLD, all));
    for (int q = 0; q < count; q++) {
        any = any || all[TOLD * q + 1];
        if (all[TOLD * q] < 1 || all[TOLD * q] > UNITS_MOST)
            return keel_fail(KEEL_EREMOTE, "process %d has shares of %lld", q,
                             (long long)all[TOLD * q]);
    }
    if (!any && !keel_lanes_unequal(l)) return KEEL_END;
    for (int q = 0; q < count; q++) {
        units[q] = (int)sum;
        sum += any ? all[TOLD * q] : s->lanes_before[q + 1] - s->lanes_before[q];
        if (sum > UNITS_MOST)
            return keel_fail(KEEL_EARG,
                             "the shares of all processes are more than %d; give "
                             "smaller numbers",
                             UNITS_MOST);
    }
    units[count] = (int)sum;
    for (int i = 0; i < l->n_lane; i++) ones[i] = 1;
    const keel_status shared = keel_lanes_share(l, any && !share ? ones : share, l->n_lane, units);
    return keel_comm_agree(s->comm, shared, NULL, 0, NULL);
}

/* Shares of a copy of the strategy's lanes. */
static keel_status share_copy(const keel_strategy *s, keel_lanes *l, const int *share, int n,
                              int *units)
{
    *l = s->lanes;
    return s->comm ? share_among_all(s, l, share, n, units) : keel_lanes_share(l, share, n, NULL);
}

keel_status keel_strategy_share(keel_strategy *s, const int *share, int n)
{
    int units[KEEL_PROCESSES_MAX + 1];
    keel_lanes lanes;
    const keel_status copied = share_copy(s, &lanes, share, n, units);
    if (copied != KEEL_OK) return copied == KEEL_END ? KEEL_OK : copied;
    const keel_status mine = keel_strategy_check_shares(&lanes, lanes.shards);
    if (s->comm) {
        KEEL_TRY(keel_comm_agree(s->comm, mine, NULL, 0, NULL));
        memcpy(s->units_before, units, (size_t)(lanes.n_process + 1) * sizeof *units);
        lanes.units_before = s->units_before;
    }
    if (mine >= 0) s->lanes = lanes;
    return mine;
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

/* Of all processes: the fastest lane and the slowest. */
static keel_status compare_all(const keel_strategy *s, double *slowest, double *fastest)
{
    int64_t all[2 * KEEL_PROCESSES_MAX];
    const int64_t own[2] = { (int64_t)(1e3 * *slowest), (int64_t)(1e3 * *fastest) };
    if (!s->comm) return KEEL_OK;
    KEEL_TRY(keel_comm_agree(s->comm, KEEL_OK, own, 2, all));
    for (int q = 0; q < s->lanes.n_process; q++) {
        *slowest = fmin(*slowest, 1e-3 * (double)all[2 * q]);
        *fastest = fmax(*fastest, 1e-3 * (double)all[2 * q + 1]);
    }
    return KEEL_OK;
}

/* Whether a lane of any process is without a part. */
static keel_status any_without(const keel_strategy *s, int without, bool *any)
{
    int64_t all[KEEL_PROCESSES_MAX];
    const int64_t own = without >= 0;
    *any = own;
    if (!s->comm) return KEEL_OK;
    KEEL_TRY(keel_comm_agree(s->comm, KEEL_OK, &own, 1, all));
    for (int q = 0; q < s->lanes.n_process; q++) *any = *any || all[q];
    return KEEL_OK;
}

/* The fastest has the most, and each at least one shard, or one of so many rows. */
static keel_status share_by(keel_strategy *s, const double *speed, int64_t rows)
{
    const double alike = 0.95; /* machines of a kind are never measured to be equally fast */
    const int n = s->lanes.n_lane;
    int share[KEEL_LANES_MAX], units[KEEL_PROCESSES_MAX + 1];
    double most = 0, least = HUGE_VAL;
    for (int i = 0; i < n; i++) most = fmax(most, speed[i]), least = fmin(least, speed[i]);
    KEEL_TRY(compare_all(s, &least, &most));
    if (s->comm && least >= alike * most) return keel_strategy_share(s, NULL, 0);
    for (int i = 0; i < n; i++) {
        share[i] = (int)lround(KEEL_SHARE_MAX * speed[i] / most);
        if (share[i] < 1) share[i] = 1;
    }
    for (bool any = true; any;) {
        keel_lanes lanes;
        KEEL_TRY(share_copy(s, &lanes, share, n, units));
        const int without = without_part(&lanes, lanes.shards ? lanes.shards : rows);
        const bool more = without >= 0 && share[without] < KEEL_SHARE_MAX;
        KEEL_TRY(any_without(s, more ? without : -1, &any));
        if (more) share[without]++;
    }
    return keel_strategy_share(s, share, n);
}

static keel_status measure_kinds(keel_strategy *s, keel_model *m, int64_t rows,
                                 const keel_shape *inputs)
{
    const keel_lanes *l = &s->lanes;
    double speed[KEEL_LANES_MAX];
    keel_status status = KEEL_OK;
    for (int i = 0; i < l->n_lane && status >= 0; i++) {
        const int64_t own = keel_div_up(rows * keel_lanes_share_of(l, i), l->all_units);
        const int first = first_of_kind(l, i);
        if (first < i)
            speed[i] = speed[first];
        else
            status = measure(s, i, m, own, inputs, &speed[i]);
    }
    if (s->comm) status = keel_comm_agree(s->comm, status, NULL, 0, NULL);
    return status < 0 ? status : share_by(s, speed, rows);
}

/* Whether all lanes are of one kind, so that nothing has to be measured. Cores of two machines may
 * always be unlike. */
static bool are_alike(const keel_strategy *s)
{
    bool alike = !s->comm || s->one_kind;
    for (int i = 1; i < s->lanes.n_lane; i++) alike = alike && first_of_kind(&s->lanes, i) == 0;
    return alike;
}

static keel_status refuse_shared(const keel_lanes *l)
{
    if (!l->shared) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "%d devices on %d cores: the speed of one that shares its core cannot be "
                     "measured; name no more than one device a core, or give the shares",
                     l->n_lane, l->n_worker);
}

keel_status keel_strategy_share_by_speed(keel_strategy *s, keel_model *m, int64_t rows,
                                         const keel_shape *inputs)
{
    if (rows < 1) return keel_fail(KEEL_EARG, "a step of %lld rows", (long long)rows);
    KEEL_TRY(keel_strategy_share(s, NULL, 0));
    /* shared lanes of one process run at the speed of their cores */
    if (are_alike(s) || (s->lanes.shared && !s->comm)) return KEEL_OK;
    if (s->comm) KEEL_TRY(keel_comm_agree(s->comm, refuse_shared(&s->lanes), NULL, 0, NULL));
    const keel_row_states kept = m->row_states; /* as they were, after the made-up rows, too */
    const int64_t batch = keel_model_batch(m);
    m->row_states = (keel_row_states){ 0 };
    keel_status status = KEEL_OK;
    for (int k = 0; k < ROUNDS && status >= 0; k++) status = measure_kinds(s, m, rows, inputs);
    keel_row_states_free(&m->row_states);
    m->row_states = kept;
    keel_model_set_batch(m, batch);
    if (status < 0 && !s->comm) (void)keel_lanes_share(&s->lanes, NULL, 0, NULL);
    return status;
}
