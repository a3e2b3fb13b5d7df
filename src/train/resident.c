/* See resident.h. */
#include "train/resident_impl.h"
#include "base/memory.h"
#include "base/round.h"
#include "graph/device_memory.h"
#include "train/mover.h"
#include "train/reduce.h"
#include <string.h>

/* ---- made ------------------------------------------------------------------------------------ */

static const keel_updater *updater_of(const keel_trainer *t, int mover)
{
    return &t->mover[mover].update;
}

/* Of all movers together; an empty range: they move nothing. */
static void find_range(const keel_trainer *t, int64_t *first, int64_t *end)
{
    *first = *end = 0;
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = updater_of(t, k);
        if (u->n_tile == 0) continue;
        const keel_tile *last = &u->tile[u->n_tile - 1];
        if (*end == 0 || u->tile[0].offset < *first) *first = u->tile[0].offset;
        if (last->offset + last->count > *end) *end = last->offset + last->count;
    }
}

static bool moves_any(const keel_trainer *t)
{
    int64_t first, end;
    find_range(t, &first, &end);
    return end > first;
}

/* All weights of the range are moved, so none is newer on the host. */
static bool is_one_range(const keel_trainer *t)
{
    int64_t first, end;
    find_range(t, &first, &end);
    for (int v = 0; v < t->store->n_weight; v++) {
        const keel_store_weight *w = &t->store->weight[v];
        if (!keel_resident_mover(t, v) && w->count > 0 && w->offset >= first && w->offset < end)
            return false;
    }
    return true;
}

static bool any_tiled(const keel_trainer *t)
{
    for (int v = 0; v < t->store->n_weight; v++)
        if (keel_resident_mover(t, v) && t->train.program->tiled[v].node >= 0) return true;
    return false;
}

static bool measures(const keel_trainer *t)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (!t->strategy->lanes.device[w]->type->measure) return false;
    return true;
}

/* Why devices do not make the moves of one optimizer. */
static const char *why_not_of(const keel_trainer *t, const keel_mover *x)
{
    const keel_optimizer *o = x->update.optimizer;
    if (x->update.n_tile == 0) return NULL;
    if (!o->move[t->store->real == KEEL_FLOAT64] ||
        (o->moves_there && !o->moves_there(x->update.args)))
        return "devices have no kernel for this optimizer";
    if (keel_resident_norms_joined(x) && !keel_resident_can_vote(t))
        return "a device adds up no squares of gradients";
    if (x->update.n_pass > 1 && !measures(t)) return "devices have no kernel for this optimizer";
    return NULL;
}

static bool any_penalized(const keel_trainer *t)
{
    bool any = false;
    for (int k = 0; k < t->n_mover; k++) any = any || t->mover[k].penalized;
    return any;
}

static bool projects(const keel_trainer *t)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (!t->strategy->lanes.device[w]->type->project) return false;
    return true;
}

const char *keel_resident_why_not(const keel_trainer *t)
{
    if (!keel_lanes_device(&t->strategy->lanes) || !moves_any(t)) return NULL;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) {
        const keel_device *d = t->strategy->lanes.device[w];
        if (!d) return "cores compute with these weights, too";
        if (!d->type->move) return "a device moves no weights";
    }
    for (int k = 0; k < t->n_mover; k++) {
        const char *why = why_not_of(t, &t->mover[k]);
        if (why) return why;
    }
    if (t->train.program->across) return "processes share the steps";
    if (t->orthogonal.n > 0 || (any_penalized(t) && !measures(t)))
        return "weights have regularizers";
    if (t->constrained && !projects(t)) return "weights have constraints";
    if (t->spectral.n > 0) return "SpectralNormalization changes weights on the host";
    if (!t->model || t->store->n_derived > 0 || any_tiled(t) || !is_one_range(t))
        return "the host computes with these weights, too";
    return NULL;
}

/* Bytes of the weights that live there. */
static int64_t range_bytes(const keel_trainer *t)
{
    return (t->resident->end - t->resident->first) * keel_resident_element(t);
}

/* Gives slots and tiles their places. */
static void place(keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    for (int m = 0; m < t->n_mover; m++) {
        const keel_updater *u = updater_of(t, m);
        r->mover[m].first_tile = r->n_tile;
        r->n_tile += u->n_tile;
        for (int k = 0; k < u->n_slot; k++) {
            r->mover[m].slot_at[k] = r->slots;
            r->slots = keel_round_up(r->slots + u->held[k], 256);
        }
    }
}

keel_status keel_resident_create(keel_trainer *t)
{
    const int n_worker = t->strategy->lanes.n_worker;
    if (!keel_lanes_device(&t->strategy->lanes) || !moves_any(t) || keel_resident_why_not(t))
        return KEEL_OK;
    struct keel_resident *r = t->resident = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    r->on = keel_calloc((size_t)n_worker, sizeof *r->on);
    r->mover = keel_calloc((size_t)t->n_mover, sizeof *r->mover);
    if (!r->on || !r->mover) return KEEL_ENOMEM;
    find_range(t, &r->first, &r->end);
    place(t);
    r->sums = any_penalized(t) ? r->n_tile * 2 * (int64_t)sizeof(double) : 0;
    keel_resident_votes_plan(t);
    for (int k = 0; k < t->n_mover; k++)
        if (t->mover[k].update.n_pass > 1) r->lengths = r->n_tile * 4 * (int64_t)sizeof(double);
    const int64_t report = r->sums + r->votes + r->norms + r->tiles + r->lengths;
    t->train.program->slot_bytes = r->slots + report;
    t->train.program->report_bytes = report;
    r->others = keel_calloc((size_t)(t->store->n_master - r->end + r->first),
                            (size_t)keel_resident_element(t));
    if (!t->options.dry) r->room = keel_calloc((size_t)(range_bytes(t) + r->slots), 1);
    if (!r->others || (!t->options.dry && !r->room)) return KEEL_ENOMEM;
    if (!t->options.dry) KEEL_TRY(keel_device_memory_check(t->train.program));
    for (int w = 0; w < n_worker && !t->options.dry; w++) {
        r->on[w].move = keel_calloc((size_t)t->store->n_weight, sizeof *r->on[w].move);
        if (!r->on[w].move) return KEEL_ENOMEM;
    }
    for (int w = 0; w < n_worker && !t->options.dry && r->slots + report > 0; w++) {
        struct resident_on *on = &r->on[w];
        KEEL_TRY(
            keel_arenas_take(t->arenas, w, KEEL_ARENA_SLOTS, r->slots + report, 1, &on->slots));
        KEEL_TRY(keel_arenas_take(t->arenas, w, KEEL_ARENA_HOST_REPORT, report, 1, &on->report));
        keel_resident_votes_place(t, w);
    }
    return KEEL_OK;
}

int64_t keel_resident_bytes(const keel_trainer *t)
{
    const struct keel_resident *r = t->resident;
    if (!r) return 0;
    return t->store->n_master * keel_resident_element(t) + r->slots; /* others and room */
}

void keel_resident_free(keel_trainer *t)
{
    if (!t->resident) return;
    for (int w = 0; t->resident->on && w < t->strategy->lanes.n_worker; w++)
        keel_free(t->resident->on[w].move);
    keel_free(t->resident->on);
    keel_free(t->resident->mover);
    keel_free(t->resident->others);
    keel_free(t->resident->room);
    keel_free(t->resident);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Copies what lives on the host between the store and the copy. */
static void copy_others(const keel_trainer *t, bool keeps)
{
    const struct keel_resident *r = t->resident;
    const int64_t before = r->first * keel_resident_element(t),
                  end = r->end * keel_resident_element(t);
    const int64_t behind = t->store->n_master * keel_resident_element(t) - end;
    char *stored = t->store->master, *kept = r->others;
    memcpy(keeps ? kept : stored, keeps ? stored : kept, (size_t)before);
    memcpy(keeps ? kept + before : stored + end, keeps ? stored + end : kept + before,
           (size_t)behind);
}

static keel_status raise_lost(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (r->on[w].lost) return keel_failure_raise(&r->on[w].failure);
    return KEEL_OK;
}

keel_status keel_resident_begin(keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    if (!r) return KEEL_OK;
    KEEL_TRY(raise_lost(t));
    if (r->ahead) return KEEL_OK;
    for (int k = 0; k < t->n_mover; k++) {
        r->mover[k].iterations = t->mover[k].update.iterations;
        r->mover[k].number = t->mover[k].update.number;
    }
    copy_others(t, true);
    return KEEL_OK;
}

static void lose(struct resident_on *on, keel_status failed)
{
    on->lost = true;
    keel_failure_take(&on->failure, failed);
}

char *keel_resident_slot(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                         int k)
{
    const struct keel_resident *r = t->resident;
    return r->on[worker].slots + r->mover[x - t->mover].slot_at[k] +
           (keel_updater_slot(&x->update, v, k, 0) - x->update.memory[k]);
}

void keel_resident_change(const keel_trainer *t, int worker, keel_variable v, keel_rule rule,
                          char *to, const char *from, keel_rule_numbers number)
{
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    d->type->move(d,
                  &(keel_device_move){ .rule = rule,
                                       .real = t->store->real,
                                       .count = t->store->weight[v].count,
                                       .w = to,
                                       .g = from,
                                       .number = number },
                  1);
}

/* Bytes into the report: the sums of a tile, of weights (0) or steps (1). */
static int64_t length_at(const keel_trainer *t, const keel_mover *x, int tile, int of)
{
    const struct keel_resident *r = t->resident;
    return r->sums + r->votes + r->norms + r->tiles +
           2 * (int64_t)sizeof(double) * (of * r->n_tile + keel_resident_tile(t, x, tile));
}

static const double *lengths_here(const keel_trainer *t, int worker, const keel_mover *x, int tile,
                                  int of)
{
    return (const double *)(t->resident->on[worker].report + length_at(t, x, tile, of));
}

static void measure(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                    const char *what, char *sums)
{
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    d->type->measure(
        d, &(keel_device_measure){ .real = t->store->real,
                                   .count = t->store->weight[v].count,
                                   .tile = x->update.tile[x->update.weight[v].first_tile].count,
                                   .w = what,
                                   .sums = (double *)sums });
}

/* Behind the first pass: leaves the step in the place of the gradient, and measures both. */
static void make_step(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                      const keel_device_move *first)
{
    const struct keel_resident *r = t->resident;
    const int tile = x->update.weight[v].first_tile;
    const keel_workspace *s = &t->train.program->workspace[worker];
    char *report = r->on[worker].slots + r->slots;
    char *g = (char *)s->grad + t->store->weight[v].offset * keel_resident_element(t);
    keel_device_move m;
    keel_updater_describe(&x->update, v, KEEL_MOVE_STEP, NULL, 1, &m);
    m.w = g;
    m.g = first->w;
    for (int k = 0; k < keel_rule_slots(m.rule); k++) m.slot[k] = first->slot[k];
    s->on_device->device->type->move(s->on_device->device, &m, 1);
    measure(t, worker, x, v, first->w, report + length_at(t, x, tile, 0));
    measure(t, worker, x, v, g, report + length_at(t, x, tile, 1));
}

static keel_status read_lengths(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    const int64_t at = r->sums + r->votes + r->norms + r->tiles;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    d->type->copy_out(d, KEEL_COMPUTE_STREAM, r->on[worker].report + at,
                      r->on[worker].slots + r->slots + at, r->lengths);
    KEEL_TRY(keel_device_reach(d, KEEL_COMPUTE_STREAM));
    keel_device_touches(d, r->on[worker].report + at, r->lengths, false);
    return KEEL_OK;
}

/* Makes the moves that have been put off, which belong to different weights. */
static void make_moves(const keel_trainer *t, int worker)
{
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    struct resident_on *on = &t->resident->on[worker];
    if (on->n_move > 0) d->type->move(d, on->move, on->n_move);
    on->n_move = 0;
}

/* By its gradient there, as step_worker.c does tile by tile. */
static void move_weight(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                        double of_all)
{
    const keel_updater *u = &x->update;
    const keel_workspace *s = &t->train.program->workspace[worker];
    struct resident_on *on = &t->resident->on[worker];
    const int64_t at = t->store->weight[v].offset * keel_resident_element(t);
    const int64_t bytes = t->store->weight[v].count * keel_resident_element(t);
    keel_device *d = s->on_device->device;
    char *w = s->on_device->weights + at, *g = (char *)s->grad + at;
    char *sum = u->accumulator < 0 ? NULL : keel_resident_slot(t, worker, x, v, u->accumulator);
    if (!keel_resident_joins_of(t, x)) keel_resident_join_weight(t, worker, x, v);
    if (sum && !u->moves)
        keel_resident_change(t, worker, v, KEEL_RULE_SUM, sum, g, (keel_rule_numbers){ 0 });
    if (!u->moves) return;
    keel_device_move m;
    keel_updater_describe(u, v, 0, NULL, keel_mover_scale(x, v, of_all), &m);
    m.w = w;
    m.g = g;
    for (int k = 0; k < keel_rule_slots(m.rule); k++)
        m.slot[k] = keel_resident_slot(t, worker, x, v, k);
    if (!sum && u->n_pass == 1) { /* nothing follows it */
        on->move[on->n_move++] = m;
        return;
    }
    d->type->move(d, &m, 1);
    if (sum) d->type->clear(d, sum, bytes);
    if (u->n_pass > 1) make_step(t, worker, x, v, &m);
}

/* The second pass, with the sums of all tiles, which the host adds up in their order. */
static void move_by_step(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v)
{
    const keel_updater *u = &x->update;
    const keel_workspace *s = &t->train.program->workspace[worker];
    const int64_t at = t->store->weight[v].offset * keel_resident_element(t);
    double sum[KEEL_UPDATE_SUMS] = { 0 };
    for (int i = 0; i < u->weight[v].n_tile; i++)
        for (int k = 0; k < 2; k++)
            sum[k] += lengths_here(t, worker, x, u->weight[v].first_tile + i, k)[1];
    keel_device_move m;
    keel_updater_describe(u, v, KEEL_MOVE_LAST, sum, 1, &m);
    m.w = s->on_device->weights + at;
    m.g = (char *)s->grad + at;
    s->on_device->device->type->move(s->on_device->device, &m, 1);
}

static void average_weight(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v)
{
    const keel_updater *u = &x->update;
    const keel_on_device *s = t->train.program->workspace[worker].on_device;
    char *w = s->weights + t->store->weight[v].offset * keel_resident_element(t);
    char *average = keel_resident_slot(t, worker, x, v, u->average);
    keel_resident_change(t, worker, v, KEEL_RULE_AVERAGE, average, w,
                         (keel_rule_numbers){ .momentum = keel_updater_kept(u) });
    if (keel_updater_overwrites(u))
        s->device->type->copy(s->device, w, average,
                              t->store->weight[v].count * keel_resident_element(t));
}

static void constrain_weight(const keel_trainer *t, int worker, keel_variable v)
{
    const keel_weight_info *info = &t->store->weight[v].info;
    const keel_on_device *x = t->train.program->workspace[worker].on_device;
    if (!keel_projects(&info->projection)) return;
    x->device->type->project(
        x->device, &(keel_device_project){ .real = t->store->real,
                                           .how = info->projection,
                                           .shape = info->spec.shape,
                                           .w = x->weights + t->store->weight[v].offset *
                                                                 keel_resident_element(t) });
}

/* The sums of a device's weights, for the regularisers of the next step. */
static void measure_weights(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    const keel_on_device *x = t->train.program->workspace[worker].on_device;
    char *there = r->on[worker].slots + r->slots;
    for (int v = 0; v < t->store->n_weight; v++) {
        const keel_store_weight *w = &t->store->weight[v];
        const keel_mover *by = keel_resident_mover(t, v);
        if (!by || !keel_penalizes(&w->info.penalty)) continue;
        const int tile = keel_resident_tile(t, by, by->update.weight[v].first_tile);
        measure(t, worker, by, v, x->weights + w->offset * keel_resident_element(t),
                there + 2 * tile * (int64_t)sizeof(double));
    }
    x->device->type->copy_out(x->device, KEEL_COMPUTE_STREAM, r->on[worker].report, there, r->sums);
}

void keel_resident_bring(const keel_trainer *t, int worker, const char *reduced)
{
    const int64_t first = t->resident->first * keel_resident_element(t);
    const keel_workspace *s = &t->train.program->workspace[worker];
    keel_device *d = s->on_device->device;
    keel_device_touches(d, reduced + first, range_bytes(t), true);
    d->type->copy_in(d, KEEL_COMPUTE_STREAM, (char *)s->grad + first, reduced + first,
                     range_bytes(t));
}

void keel_resident_brought(const keel_trainer *t, int worker, const char *reduced)
{
    keel_device_touches(t->train.program->workspace[worker].on_device->device,
                        reduced + t->resident->first * keel_resident_element(t), range_bytes(t),
                        true);
}

/* What the host has in slots, to where it lives from now on. */
static void enter(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    for (int m = 0; m < t->n_mover; m++) {
        const keel_updater *u = updater_of(t, m);
        for (int k = 0; k < u->n_slot; k++)
            if (u->held[k] > 0)
                d->type->copy_in(d, KEEL_COMPUTE_STREAM,
                                 r->on[worker].slots + r->mover[m].slot_at[k], u->memory[k],
                                 u->held[k]);
    }
}

static keel_status move_all(const keel_trainer *t, int worker, const keel_mover *x)
{
    const keel_updater *u = &x->update;
    const double of_all = keel_mover_scale_of_all(x);
    const bool by_step = u->n_pass > 1 && u->moves;
    for (int v = 0; v < t->store->n_weight; v++)
        if (u->weight[v].n_tile > 0 && keel_mover_has_gradient(t, v))
            move_weight(t, worker, x, v, of_all);
    make_moves(t, worker);
    if (by_step) KEEL_TRY(read_lengths(t, worker));
    for (int v = 0; v < t->store->n_weight; v++) {
        if (u->weight[v].n_tile == 0) continue;
        if (by_step && keel_mover_has_gradient(t, v)) move_by_step(t, worker, x, v);
        if (u->average >= 0) average_weight(t, worker, x, v);
        if (keel_mover_has_gradient(t, v)) constrain_weight(t, worker, v);
    }
    return KEEL_OK;
}

void keel_resident_move(const keel_trainer *t, int worker, const char *reduced)
{
    const struct keel_resident *r = t->resident;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    struct resident_on *on = &r->on[worker];
    /* else the device has them */
    const bool comes = !keel_on_device_stays(t->train.program) && !keel_resident_joins(t);
    if (t->store->resident_end == 0) enter(t, worker);
    if (comes) keel_resident_bring(t, worker, reduced);
    keel_status failed = KEEL_OK;
    for (int k = 0; k < t->n_mover && failed >= 0; k++) failed = move_all(t, worker, &t->mover[k]);
    if (failed >= 0 && r->sums > 0) measure_weights(t, worker);
    if (failed >= 0) failed = keel_device_reach(d, KEEL_COMPUTE_STREAM);
    if (failed < 0) { /* what it may still read is of no use to anybody */
        lose(on, failed);
        return;
    }
    if (r->sums > 0) keel_device_touches(d, on->report, r->sums, false);
    if (comes) keel_resident_brought(t, worker, reduced);
}

/* The host has what it had. */
static keel_status go_back(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    for (int k = 0; k < t->n_mover; k++) {
        t->mover[k].update.iterations = r->mover[k].iterations;
        t->mover[k].update.number = r->mover[k].number;
    }
    copy_others(t, false);
    r->ahead = false;
    t->store->resident_first = t->store->resident_end = 0;
    keel_store_moved(t->store);
    const keel_status s = raise_lost(t);
    return keel_fail_within(s, "no device has the weights any more; they are as after %lld steps",
                            (long long)r->mover[0].iterations);
}

static int living(const keel_trainer *t)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (!t->resident->on[w].lost) return w;
    return -1;
}

double keel_resident_penalty(const keel_trainer *t, const keel_mover *x, int tile)
{
    const struct keel_resident *r = t->resident;
    const keel_tile *at = &x->update.tile[tile];
    const keel_penalty *p = &t->store->weight[at->variable].info.penalty;
    if (!keel_penalizes(p)) return 0;
    if (!r->ahead)
        return keel_reduce_penalty(
            t->store->real, p, t->store->master + at->offset * keel_resident_element(t), at->count);
    const double *sums =
        (const double *)r->on[living(t)].report + 2 * keel_resident_tile(t, x, tile);
    return p->l1 * sums[0] + p->l2 * sums[1];
}

keel_status keel_resident_end(keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    r->ahead = true;
    t->store->resident_first = r->first;
    t->store->resident_end = r->end;
    return living(t) < 0 ? go_back(t) : KEEL_OK;
}

/* ---- asked for ------------------------------------------------------------------------------- */

/* From one device, behind all that it has done: the host has waited for that. What the host has is
 * written once all has come. */
static keel_status fetch_from(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    const keel_on_device *x = t->train.program->workspace[worker].on_device;
    keel_device *d = x->device;
    const int64_t bytes = range_bytes(t);
    char *master = t->store->master + r->first * keel_resident_element(t);
    d->type->copy_out(d, KEEL_COPY_OUT_STREAM, r->room,
                      x->weights + r->first * keel_resident_element(t), bytes);
    if (r->slots > 0)
        d->type->copy_out(d, KEEL_COPY_OUT_STREAM, r->room + bytes, r->on[worker].slots, r->slots);
    KEEL_TRY(keel_device_reach(d, KEEL_COPY_OUT_STREAM));
    keel_device_touches(d, r->room, bytes + r->slots, false);
    memcpy(master, r->room, (size_t)bytes);
    for (int m = 0; m < t->n_mover; m++) {
        const keel_updater *u = updater_of(t, m);
        for (int k = 0; k < u->n_slot; k++)
            if (u->held[k] > 0)
                memcpy(u->memory[k], r->room + bytes + r->mover[m].slot_at[k], (size_t)u->held[k]);
    }
    return KEEL_OK;
}

keel_status keel_resident_fetch(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    if (!r) return KEEL_OK;
    if (living(t) < 0) return raise_lost(t);
    if (!r->ahead) return KEEL_OK;
    for (int w; (w = living(t)) >= 0;) {
        const keel_status s = fetch_from(t, w);
        if (s >= 0) {
            r->ahead = false;
            return KEEL_OK;
        }
        lose(&r->on[w], s);
    }
    return go_back(t);
}

void keel_resident_leave(const keel_trainer *t)
{
    (void)keel_resident_fetch(t);
    if (t->resident) t->store->resident_first = t->store->resident_end = 0;
}
