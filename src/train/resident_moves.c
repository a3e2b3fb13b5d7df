/* See resident.h: the moves that a device makes, behind the commit point. */
#include "train/mover.h"
#include "train/resident_impl.h"

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
    d->type->measure(d, &(keel_device_measure){ .real = t->store->real,
                                                .count = t->store->weight[v].count,
                                                .tile = keel_updater_tile_count(&x->update, v),
                                                .w = what,
                                                .sums = (double *)sums });
}

/* Behind the first pass: leaves the step in the place of the gradient. */
static char *make_step(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                       const keel_device_move *first)
{
    const keel_workspace *s = &t->train.program->workspace[worker];
    char *g = (char *)s->grad + t->store->weight[v].offset * keel_resident_element(t);
    keel_device_move m;
    keel_updater_describe(&x->update, v, KEEL_MOVE_STEP, NULL, first->number.scale, &m);
    m.w = g;
    m.g = first->w;
    for (int k = 0; k < keel_rule_slots(m.rule); k++) m.slot[k] = first->slot[k];
    s->on_device->device->type->move(s->on_device->device, &m, 1);
    return g;
}

static void measure_step(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                         const char *w, const char *step)
{
    const struct keel_resident *r = t->resident;
    const int tile = x->update.weight[v].first_tile;
    char *report = r->on[worker].slots + r->slots;
    measure(t, worker, x, v, w, report + length_at(t, x, tile, 0));
    measure(t, worker, x, v, step, report + length_at(t, x, tile, 1));
}

static void orthogonalize_step(const keel_trainer *t, int worker, const keel_updater *u,
                               keel_variable v, char *step)
{
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    const int64_t *dim = t->store->weight[v].info.spec.shape.dim;
    keel_device_orthogonal o = { .real = t->store->real,
                                 .rows = dim[0],
                                 .columns = dim[1],
                                 .tile = keel_updater_tile_count(u, v),
                                 .x = step,
                                 .scratch =
                                     t->resident->on[worker].slots + t->resident->scratch_at };
    u->optimizer->orthogonal(keel_updater_args(u, v), &o);
    d->type->orthogonalize(d, &o);
}

static void factor_weight(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                          double scale)
{
    const keel_workspace *s = &t->train.program->workspace[worker];
    const int64_t at = t->store->weight[v].offset * keel_resident_element(t);
    keel_device_factored f;
    keel_updater_factor(&x->update, v, scale, &f);
    f.w = s->on_device->weights + at;
    f.g = (char *)s->grad + at;
    f.r = f.matrices > 0 ? keel_resident_slot(t, worker, x, v, 0) : NULL;
    f.c = f.matrices > 0 ? keel_resident_slot(t, worker, x, v, 1) : NULL;
    f.v = keel_resident_slot(t, worker, x, v, 2);
    f.scratch = t->resident->on[worker].slots + t->resident->scratch_at;
    s->on_device->device->type->factor(s->on_device->device, &f);
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
    if (keel_resident_factors(u)) {
        factor_weight(t, worker, x, v, keel_mover_scale(x, v, of_all));
        if (sum) d->type->clear(d, sum, bytes);
        return;
    }
    keel_device_move m;
    keel_updater_describe(u, v, 0, NULL, keel_mover_scale(x, v, of_all), &m);
    m.w = w;
    m.g = g;
    for (int k = 0; k < keel_rule_slots(m.rule); k++)
        m.slot[k] = keel_resident_slot(t, worker, x, v, k);
    const bool steps = m.rule == KEEL_RULE_LAMB || m.rule == KEEL_RULE_MUON;
    if (!sum && !steps) { /* nothing follows it */
        on->move[on->n_move++] = m;
        return;
    }
    d->type->move(d, &m, 1);
    if (sum) d->type->clear(d, sum, bytes);
    if (!steps) return;
    char *step = make_step(t, worker, x, v, &m);
    if (m.rule == KEEL_RULE_LAMB) {
        measure_step(t, worker, x, v, w, step);
        return;
    }
    orthogonalize_step(t, worker, u, v, step);
    keel_updater_describe(u, v, KEEL_MOVE_LAST, NULL, 1, &m);
    m.w = w;
    m.g = step;
    on->move[on->n_move++] = m;
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
    keel_device_touches(d, reduced + first, keel_resident_range(t), true);
    d->type->copy_in(d, KEEL_COMPUTE_STREAM, (char *)s->grad + first, reduced + first,
                     keel_resident_range(t));
}

void keel_resident_brought(const keel_trainer *t, int worker, const char *reduced)
{
    keel_device_touches(t->train.program->workspace[worker].on_device->device,
                        reduced + t->resident->first * keel_resident_element(t),
                        keel_resident_range(t), true);
}

void keel_resident_enter(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    for (int m = 0; m < t->n_mover && t->store->resident_end == 0; m++) {
        const keel_updater *u = keel_resident_updater(t, m);
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
    const bool by_step = keel_resident_by_lengths(u) && u->moves;
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
    struct resident_on *on = &r->on[worker];
    /* else the device has them */
    const bool comes = !keel_on_device_stays(t->train.program) && !keel_resident_joins(t);
    const keel_on_device *x = t->train.program->workspace[worker].on_device;
    keel_status failed = keel_resident_kept(t, worker, x->waited_out);
    if (failed >= 0 && !keel_resident_joins(t)) keel_resident_enter(t, worker);
    if (failed >= 0 && comes) keel_resident_bring(t, worker, reduced);
    for (int k = 0; k < t->n_mover && failed >= 0; k++) failed = move_all(t, worker, &t->mover[k]);
    if (failed >= 0 && r->sums > 0) measure_weights(t, worker);
    if (failed >= 0) failed = keel_device_reach(x->device, KEEL_COMPUTE_STREAM);
    if (failed < 0) { /* what it may still read is of no use to anybody */
        keel_resident_lose(on, failed);
        return;
    }
    if (r->sums > 0) keel_device_touches(x->device, on->report, r->sums, false);
    if (comes) keel_resident_brought(t, worker, reduced);
}
