/* See resident.h. */
#include "train/resident.h"
#include "base/memory.h"
#include "base/round.h"
#include "graph/device_memory.h"
#include "graph/on_device.h"
#include "train/mover.h"
#include "train/penalty.h"
#include <string.h>

struct keel_resident {
    int64_t first, end;              /* elements of the store that live there */
    int64_t slot_at[KEEL_SLOTS_MAX]; /* bytes into a device's slots ... */
    int64_t slots;                   /* ... of so many */
    bool ahead;                      /* the devices have moved since the host caught up */
    struct resident_on {
        char *slots;
        bool lost;
        keel_failure failure;
    } * on; /* [n_worker] */
    /* What the host had when it caught up, besides those elements. */
    int64_t iterations;
    double number;
    char *others;
    char *room; /* those elements, and the slots, until all have come */
};

static int64_t element_of(const keel_trainer *t)
{
    return (int64_t)keel_dtype_size(t->store->real);
}

/* ---- made ------------------------------------------------------------------------------------ */

/* All weights of the range are moved, so none is newer on the host. */
static bool is_one_range(const keel_trainer *t, const keel_updater *u)
{
    const keel_tile *last = &u->tile[u->n_tile - 1];
    const int64_t first = u->tile[0].offset, end = last->offset + last->count;
    for (int v = 0; v < t->store->n_weight; v++) {
        const keel_store_weight *w = &t->store->weight[v];
        if (u->weight[v].n_tile == 0 && w->count > 0 && w->offset >= first && w->offset < end)
            return false;
    }
    return true;
}

static bool any_tiled(const keel_trainer *t, const keel_updater *u)
{
    for (int i = 0; i < u->n_tile; i++)
        if (t->train.program->tiled[u->tile[i].variable].node >= 0) return true;
    return false;
}

const char *keel_resident_why_not(const keel_trainer *t)
{
    const keel_updater *u = t->n_mover ? &t->mover[0].update : NULL;
    if (!t->strategy->lanes.device[0] || !u || u->n_tile == 0) return NULL;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (!t->strategy->lanes.device[w] || !t->strategy->lanes.device[w]->type->move)
            return "a device moves no weights";
    if (t->n_mover > 1) return "there are several optimizers";
    if (!u->optimizer->move[t->store->real == KEEL_FLOAT64])
        return "devices have no kernel for this optimizer";
    if (t->train.program->across) return "processes share the steps";
    if (u->average >= 0) return "it keeps averages of weights (use_ema)";
    if (u->accumulator >= 0) return "it adds up gradients (gradient_accumulation_steps)";
    if (t->mover[0].penalized || t->orthogonal.n > 0) return "weights have regularizers";
    if (t->constrained) return "weights have constraints";
    if (t->spectral.n > 0) return "SpectralNormalization changes weights on the host";
    if (!t->model || t->store->n_derived > 0 || any_tiled(t, u) || !is_one_range(t, u))
        return "the host computes with these weights, too";
    return NULL;
}

/* Bytes of the weights that live there. */
static int64_t range_bytes(const keel_trainer *t)
{
    return (t->resident->end - t->resident->first) * element_of(t);
}

/* Bytes of the slots on a device. */
static int64_t place_slots(struct keel_resident *r, const keel_updater *u)
{
    int64_t end = 0;
    for (int k = 0; k < u->n_slot; k++) {
        r->slot_at[k] = end;
        end = keel_round_up(end + u->held[k], 256);
    }
    return end;
}

keel_status keel_resident_create(keel_trainer *t)
{
    const keel_updater *u = t->n_mover ? &t->mover[0].update : NULL;
    const int n_worker = t->strategy->lanes.n_worker;
    if (!t->strategy->lanes.device[0] || !u || u->n_tile == 0 || keel_resident_why_not(t))
        return KEEL_OK;
    struct keel_resident *r = t->resident = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    r->on = keel_calloc((size_t)n_worker, sizeof *r->on);
    r->first = u->tile[0].offset;
    r->end = u->tile[u->n_tile - 1].offset + u->tile[u->n_tile - 1].count;
    r->slots = t->train.program->slot_bytes = place_slots(r, u);
    r->others =
        keel_calloc((size_t)(t->store->n_master - r->end + r->first), (size_t)element_of(t));
    if (!t->options.dry) r->room = keel_calloc((size_t)(range_bytes(t) + r->slots), 1);
    if (!r->on || !r->others || (!t->options.dry && !r->room)) return KEEL_ENOMEM;
    KEEL_TRY(keel_device_memory_check(t->train.program));
    for (int w = 0; w < n_worker && !t->options.dry && r->slots > 0; w++) {
        void *at;
        KEEL_TRY(keel_arenas_take(t->arenas, w, KEEL_ARENA_SLOTS, r->slots, 1, &at));
        r->on[w].slots = at;
    }
    return KEEL_OK;
}

int64_t keel_resident_bytes(const keel_trainer *t)
{
    const struct keel_resident *r = t->resident;
    return r ? t->store->n_master * element_of(t) + r->slots : 0; /* others and room */
}

void keel_resident_free(keel_trainer *t)
{
    if (!t->resident) return;
    keel_free(t->resident->on);
    keel_free(t->resident->others);
    keel_free(t->resident->room);
    keel_free(t->resident);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Copies what lives on the host between the store and the copy. */
static void copy_others(const keel_trainer *t, bool keeps)
{
    const struct keel_resident *r = t->resident;
    const int64_t before = r->first * element_of(t), end = r->end * element_of(t);
    const int64_t behind = t->store->n_master * element_of(t) - end;
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
    r->iterations = t->mover[0].update.iterations;
    r->number = t->mover[0].update.number;
    copy_others(t, true);
    return KEEL_OK;
}

static void lose(struct resident_on *on, keel_status failed)
{
    on->lost = true;
    keel_failure_take(&on->failure, failed);
}

void keel_resident_move(const keel_trainer *t, int worker, const char *reduced)
{
    const struct keel_resident *r = t->resident;
    const keel_mover *x = &t->mover[0];
    const keel_updater *u = &x->update;
    const keel_workspace *s = &t->train.program->workspace[worker];
    keel_device *d = s->on_device->device;
    struct resident_on *on = &r->on[worker];
    const int64_t element = element_of(t);
    const double of_all = keel_mover_scale_of_all(x);
    const bool enters = t->store->resident_end == 0;
    for (int k = 0; enters && k < u->n_slot; k++)
        if (u->held[k] > 0)
            d->type->copy_in(d, KEEL_COMPUTE_STREAM, on->slots + r->slot_at[k], u->memory[k],
                             u->held[k]);
    keel_device_touches(d, reduced + r->first * element, (r->end - r->first) * element, true);
    d->type->copy_in(d, KEEL_COMPUTE_STREAM, (char *)s->grad + r->first * element,
                     reduced + r->first * element, (r->end - r->first) * element);
    for (int v = 0; v < t->store->n_weight; v++) {
        const int64_t at = t->store->weight[v].offset * element;
        keel_device_move m;
        if (u->weight[v].n_tile == 0 || !keel_mover_has_gradient(t, v)) continue;
        keel_updater_describe(u, v, keel_mover_scale(x, v, of_all), &m);
        m.w = s->on_device->weights + at;
        m.g = (const char *)s->grad + at;
        for (int k = 0; k < keel_rule_slots(m.rule); k++)
            m.slot[k] = on->slots + r->slot_at[k] + ((char *)m.slot[k] - u->memory[k]);
        d->type->move(d, &m);
    }
    const keel_status failed = keel_device_reach(d, KEEL_COMPUTE_STREAM);
    if (failed < 0) lose(on, failed);
    /* another device may write the gradients of the next step there */
    keel_device_touches(d, reduced + r->first * element, (r->end - r->first) * element, true);
}

/* The host has what it had. */
static keel_status go_back(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    t->mover[0].update.iterations = r->iterations;
    t->mover[0].update.number = r->number;
    copy_others(t, false);
    r->ahead = false;
    t->store->resident_first = t->store->resident_end = 0;
    keel_store_moved(t->store);
    const keel_status s = raise_lost(t);
    return keel_fail_within(s, "no device has the weights any more; they are as after %lld steps",
                            (long long)r->iterations);
}

static int living(const keel_trainer *t)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (!t->resident->on[w].lost) return w;
    return -1;
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
    const keel_updater *u = &t->mover[0].update;
    const keel_on_device *x = t->train.program->workspace[worker].on_device;
    keel_device *d = x->device;
    const int64_t bytes = range_bytes(t);
    char *master = t->store->master + r->first * element_of(t);
    d->type->copy_out(d, KEEL_COPY_OUT_STREAM, r->room, x->weights + r->first * element_of(t),
                      bytes);
    if (r->slots > 0)
        d->type->copy_out(d, KEEL_COPY_OUT_STREAM, r->room + bytes, r->on[worker].slots, r->slots);
    KEEL_TRY(keel_device_reach(d, KEEL_COPY_OUT_STREAM));
    keel_device_touches(d, r->room, bytes + r->slots, false);
    memcpy(master, r->room, (size_t)bytes);
    for (int k = 0; k < u->n_slot; k++)
        if (u->held[k] > 0)
            memcpy(u->memory[k], r->room + bytes + r->slot_at[k], (size_t)u->held[k]);
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
