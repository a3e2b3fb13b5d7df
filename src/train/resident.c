/* See resident.h. */
#include "train/resident_impl.h"
#include "base/memory.h"
#include "base/round.h"
#include "graph/device_memory.h"
#include "train/mover.h"
#include "train/reduce.h"
#include <string.h>

/* ---- made ------------------------------------------------------------------------------------ */

/* Of all movers together; an empty range: they move nothing. */
static void find_range(const keel_trainer *t, int64_t *first, int64_t *end)
{
    *first = *end = 0;
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = keel_resident_updater(t, k);
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

/* Whether all devices have a function, which the member of their type at that offset points to. */
static bool all_have(const keel_trainer *t, size_t member)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) {
        void (*function)(void);
        memcpy(&function, (const char *)t->strategy->lanes.device[w]->type + member,
               sizeof function);
        if (!function) return false;
    }
    return true;
}
#define ALL_HAVE(t, member) all_have(t, offsetof(keel_device_type, member))

/* Besides `move`. */
static bool have_kernels(const keel_trainer *t, const keel_updater *u)
{
    if (keel_resident_factors(u)) return ALL_HAVE(t, factor);
    if (u->optimizer->orthogonal) return ALL_HAVE(t, orthogonalize);
    return u->n_pass == 1 || ALL_HAVE(t, measure);
}

/* Why devices do not make the moves of one optimizer. */
static const char *why_not_of(const keel_trainer *t, const keel_mover *x)
{
    const keel_optimizer *o = x->update.optimizer;
    if (x->update.n_tile == 0) return NULL;
    if (!(o->move[t->store->real == KEEL_FLOAT64] || keel_resident_factors(&x->update)) ||
        (o->moves_there && !o->moves_there(x->update.args)))
        return "devices have no kernel for this optimizer";
    if (keel_resident_norms_joined(x) && !keel_resident_can_vote(t))
        return "a device adds up no squares of gradients";
    if (!have_kernels(t, &x->update)) return "devices have no kernel for this optimizer";
    return NULL;
}

static bool any_penalized(const keel_trainer *t)
{
    bool any = false;
    for (int k = 0; k < t->n_mover; k++) any = any || t->mover[k].penalized;
    return any;
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
    if (t->train.program->across && !t->strategy->one_kind)
        return "other processes have cores, or another kind of devices";
    if (t->options.shard_optimizer) return "each process keeps a part of the optimizer's state";
    if (t->orthogonal.n > 0 || (any_penalized(t) && !ALL_HAVE(t, measure)))
        return "weights have regularizers";
    if (t->constrained && !ALL_HAVE(t, project)) return "weights have constraints";
    if (t->spectral.n > 0) return "SpectralNormalization changes weights on the host";
    if (!t->model || t->store->n_derived > 0 || any_tiled(t) || !is_one_range(t))
        return "the host computes with these weights, too";
    return NULL;
}

/* Gives slots and tiles their places. */
static void place(keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    for (int m = 0; m < t->n_mover; m++) {
        const keel_updater *u = keel_resident_updater(t, m);
        r->mover[m].first_tile = r->n_tile;
        r->n_tile += u->n_tile;
        for (int k = 0; k < u->n_slot; k++) {
            r->mover[m].slot_at[k] = r->slots;
            r->slots = keel_round_up(r->slots + u->held[k], 256);
        }
    }
}

/* Bytes of scratch that the moves of one weight need. */
static int64_t scratch_of(const keel_trainer *t, const keel_updater *u, keel_variable v)
{
    if (u->weight[v].n_tile == 0) return 0;
    if (keel_resident_factors(u)) {
        keel_device_factored f;
        keel_updater_factor(u, v, 1, &f);
        return keel_factored_room_of(&f).size;
    }
    if (!u->optimizer->orthogonal || !u->weight[v].scratch) return 0;
    const int64_t *dim = t->store->weight[v].info.spec.shape.dim;
    const int64_t tile = keel_updater_tile_count(u, v);
    return keel_orthogonal_room_of(dim[0], dim[1], tile, keel_resident_element(t)).size;
}

static int64_t most_scratch(const keel_trainer *t)
{
    int64_t most = 0;
    for (int k = 0; k < t->n_mover; k++)
        for (int v = 0; v < t->store->n_weight; v++) {
            const int64_t bytes = scratch_of(t, keel_resident_updater(t, k), v);
            if (bytes > most) most = bytes;
        }
    return most;
}

/* Bytes of what a device reports to the host. */
static int64_t plan_report(keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    r->sums = any_penalized(t) ? r->n_tile * 2 * (int64_t)sizeof(double) : 0;
    keel_resident_votes_plan(t);
    for (int k = 0; k < t->n_mover; k++)
        if (keel_resident_by_lengths(&t->mover[k].update))
            r->lengths = r->n_tile * 4 * (int64_t)sizeof(double);
    return r->sums + r->votes + r->norms + r->tiles + r->lengths;
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
    r->scale = &t->loss_scale;
    find_range(t, &r->first, &r->end);
    place(t);
    const int64_t report = plan_report(t), scratch = most_scratch(t);
    r->scratch_at = scratch > 0 ? keel_round_up(r->slots + report, 256) : r->slots + report;
    const int64_t there = r->scratch_at + scratch;
    t->train.program->slot_bytes = there;
    t->train.program->report_bytes = report;
    t->train.program->kept_bytes = keel_resident_range(t) + r->slots;
    for (int i = 0; i < 2; i++) {
        r->others[i] = keel_calloc((size_t)(t->store->n_master - r->end + r->first),
                                   (size_t)keel_resident_element(t));
        if (!r->others[i]) return KEEL_ENOMEM;
    }
    if (t->options.dry) return KEEL_OK;
    KEEL_TRY(keel_device_memory_check(t->train.program));
    KEEL_TRY(keel_arenas_take(t->arenas, 0, KEEL_ARENA_HOST_KEPT, t->train.program->kept_bytes, 1,
                              &r->room));
    for (int w = 0; w < n_worker; w++) {
        r->on[w].move = keel_calloc((size_t)t->store->n_weight, sizeof *r->on[w].move);
        if (!r->on[w].move) return KEEL_ENOMEM;
    }
    for (int w = 0; w < n_worker && there > 0; w++) {
        struct resident_on *on = &r->on[w];
        KEEL_TRY(keel_arenas_take(t->arenas, w, KEEL_ARENA_SLOTS, there, 1, &on->slots));
        KEEL_TRY(keel_arenas_take(t->arenas, w, KEEL_ARENA_HOST_REPORT, report, 1, &on->report));
        keel_resident_votes_place(t, w);
    }
    return KEEL_OK;
}

int64_t keel_resident_bytes(const keel_trainer *t)
{
    const struct keel_resident *r = t->resident;
    return r ? 2 * (t->store->n_master * keel_resident_element(t) - keel_resident_range(t)) : 0;
}

void keel_resident_free(keel_trainer *t)
{
    if (!t->resident) return;
    for (int w = 0; t->resident->on && w < t->strategy->lanes.n_worker; w++)
        keel_free(t->resident->on[w].move);
    keel_free(t->resident->on);
    keel_free(t->resident->mover);
    for (int i = 0; i < 2; i++) keel_free(t->resident->others[i]);
    keel_free(t->resident);
}

/* ---- regularisers -----------------------------------------------------------------------------
 */

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
        (const double *)r->on[keel_resident_living(t)].report + 2 * keel_resident_tile(t, x, tile);
    return p->l1 * sums[0] + p->l2 * sums[1];
}
