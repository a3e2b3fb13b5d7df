/* See resident.h: what the host has of weights that live on devices, and what it goes back to.
 *
 *     device     | steps of an epoch |   | forward, backward | moves | ...
 *     copy out                           | kept  |
 *     host                               |               | room has it |  into the store, a part
 *                                                                         in each run
 *
 * At the end of an epoch nobody may want to read the weights, but a device that fails later must
 * not take the epoch along. So they are copied out while the next run computes, which reads them
 * too; a device moves them when it has seen the end of that. They come into the room, since what
 * the host goes back to must be whole at every moment: until all have come that is the store, and
 * from then on the room, whose contents the host moves to the store while it would else wait for
 * the device. A run that fails may have told the failure of the copy as its own, so then nobody
 * trusts what has come. */
#include "train/resident_impl.h"
#include "graph/device_memory.h"
#include "train/mover.h"
#include <string.h>

enum { SETTLED_IN = 32, SETTLED_LEAST = 1 << 12 }; /* runs, and bytes of each */

/* ---- points to go back to -------------------------------------------------------------------- */

/* Copies what lives on the host between the store and a copy. */
static void copy_others(const keel_trainer *t, char *kept, bool keeps)
{
    const struct keel_resident *r = t->resident;
    const int64_t before = r->first * keel_resident_element(t),
                  end = r->end * keel_resident_element(t);
    const int64_t behind = t->store->n_master * keel_resident_element(t) - end;
    char *stored = t->store->master;
    memcpy(keeps ? kept : stored, keeps ? stored : kept, (size_t)before);
    memcpy(keeps ? kept + before : stored + end, keeps ? stored + end : kept + before,
           (size_t)behind);
}

static void remember(const keel_trainer *t, int point)
{
    struct keel_resident *r = t->resident;
    for (int k = 0; k < t->n_mover; k++) {
        r->mover[k].iterations[point] = t->mover[k].update.iterations;
        r->mover[k].number[point] = t->mover[k].update.number;
    }
    r->scale_at[point] = *r->scale;
    copy_others(t, r->others[point], true);
}

/* A callback may have had the model read them. */
static void go_back_to_numbers(const keel_trainer *t)
{
    const struct keel_resident *r = t->resident;
    keel_model_compiled *c = &t->model->compiled;
    const int64_t skipped = r->scale->skipped; /* steps that were made all the same */
    for (int k = 0; k < t->n_mover; k++) {
        c->iterations = t->mover[k].update.iterations = r->mover[k].iterations[r->point];
        c->optimizer[k].number = t->mover[k].update.number = r->mover[k].number[r->point];
    }
    *r->scale = r->scale_at[r->point];
    r->scale->skipped = skipped;
    if (!r->scale->on) return;
    c->loss_scale = r->scale->now;
    c->good_steps = r->scale->good;
}

static keel_status raise_lost(const keel_trainer *t)
{
    const struct keel_resident *r = t->resident;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (r->on[w].lost) return keel_failure_raise(&r->on[w].failure);
    return KEEL_OK;
}

int keel_resident_living(const keel_trainer *t)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (!t->resident->on[w].lost) return w;
    return -1;
}

/* ---- the room, and the store ----------------------------------------------------------------- */

static int64_t room_bytes(const keel_trainer *t)
{
    return keel_resident_range(t) + t->resident->slots;
}

/* Of [at, at + bytes) of the room, what lies in [first, end): to its place. */
static void settle_piece(const keel_trainer *t, char *to, int64_t at, int64_t bytes, int64_t first,
                         int64_t end)
{
    const int64_t from = at > first ? at : first;
    const int64_t until = at + bytes < end ? at + bytes : end;
    if (until > from) memcpy(to + (from - at), t->resident->room + from, (size_t)(until - from));
}

/* So many more bytes of what has come. */
static void settle(const keel_trainer *t, int64_t bytes)
{
    struct keel_resident *r = t->resident;
    const int64_t first = r->settled, all = room_bytes(t), range = keel_resident_range(t);
    const int64_t end = bytes < all - first ? first + bytes : all;
    if (!r->came) return;
    settle_piece(t, (char *)t->store->master + r->first * keel_resident_element(t), 0, range, first,
                 end);
    for (int m = 0; m < t->n_mover; m++) {
        const keel_updater *u = keel_resident_updater(t, m);
        for (int k = 0; k < u->n_slot; k++)
            settle_piece(t, u->memory[k], range + r->mover[m].slot_at[k], u->held[k], first, end);
    }
    r->settled = end;
    r->came = end < all;
}

void keel_resident_settle(void *trainer)
{
    const keel_trainer *t = trainer;
    settle(t, room_bytes(t) / SETTLED_IN + SETTLED_LEAST);
}

/* Enqueues copies of what a device has, behind all that it has done: the host has waited for that.
 * The store has what was in the room. */
static void send(const keel_trainer *t, int worker)
{
    const struct keel_resident *r = t->resident;
    const keel_on_device *x = t->train.program->workspace[worker].on_device;
    keel_device *d = x->device;
    const int64_t bytes = keel_resident_range(t);
    d->type->copy_out(d, KEEL_COPY_OUT_STREAM, r->room,
                      x->weights + r->first * keel_resident_element(t), bytes);
    if (r->slots > 0)
        d->type->copy_out(d, KEEL_COPY_OUT_STREAM, r->room + bytes, r->on[worker].slots, r->slots);
}

/* When the host has waited for that. */
static void arrive(const keel_trainer *t, int worker)
{
    struct keel_resident *r = t->resident;
    keel_device_touches(t->train.program->workspace[worker].on_device->device, r->room,
                        room_bytes(t), false);
    r->came = r->current = true;
    r->settled = 0;
}

/* ---- kept at the end of an epoch ------------------------------------------------------------- */

/* The worker whose device sends; -1: none. */
static int sender(const keel_trainer *t)
{
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (t->resident->on[w].sends) return w;
    return -1;
}

void keel_resident_keep(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    const int living = r ? keel_resident_living(t) : -1;
    if (living < 0 || !r->ahead || r->current || sender(t) >= 0) return;
    settle(t, room_bytes(t));
    remember(t, !r->point);
    r->on[living].sends = true;
    send(t, living);
}

keel_status keel_resident_kept(const keel_trainer *t, int worker, bool waited)
{
    struct keel_resident *r = t->resident;
    keel_device *d = t->train.program->workspace[worker].on_device->device;
    if (!r->on[worker].sends) return KEEL_OK;
    r->on[worker].sends = false;
    if (!waited) KEEL_TRY(keel_device_reach(d, KEEL_COPY_OUT_STREAM));
    arrive(t, worker);
    r->point = !r->point;
    return KEEL_OK;
}

/* What is under way is not trusted. */
static void drop(const keel_trainer *t)
{
    const int worker = sender(t);
    if (worker >= 0) t->resident->on[worker].sends = false;
}

/* ---- a step ---------------------------------------------------------------------------------- */

keel_status keel_resident_begin(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    if (!r) return KEEL_OK;
    KEEL_TRY(raise_lost(t));
    if (!r->ahead) remember(t, r->point);
    if (r->doubted) drop(t);
    r->doubted = true;
    return KEEL_OK;
}

void keel_resident_ran(const keel_trainer *t)
{
    if (t->resident) t->resident->doubted = false;
}

keel_status keel_resident_go_back(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    settle(t, room_bytes(t));
    go_back_to_numbers(t);
    copy_others(t, r->others[r->point], false);
    r->ahead = r->current = false;
    t->store->resident_first = t->store->resident_end = 0;
    keel_store_moved(t->store);
    const keel_status s = raise_lost(t);
    return keel_fail_within(s, "no device has the weights any more; they are as after %lld steps",
                            (long long)r->mover[0].iterations[r->point]);
}

keel_status keel_resident_end(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    r->ahead = true;
    r->current = false;
    t->store->resident_first = r->first;
    t->store->resident_end = r->end;
    return keel_resident_living(t) < 0 ? keel_resident_go_back(t) : KEEL_OK;
}

/* ---- asked for ------------------------------------------------------------------------------- */

/* Whether the host has all that devices have, once it has waited for what is under way. */
static bool is_current(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    if (r->doubted) drop(t);
    const int worker = sender(t);
    if (worker >= 0) {
        const keel_status s = keel_resident_kept(t, worker, false);
        if (s < 0) keel_resident_lose(&r->on[worker], s);
    }
    return r->current;
}

/* What the host has is written once all has come. */
static keel_status fetch_from(const keel_trainer *t, int worker)
{
    settle(t, room_bytes(t));
    send(t, worker);
    KEEL_TRY(keel_device_reach(t->train.program->workspace[worker].on_device->device,
                               KEEL_COPY_OUT_STREAM));
    arrive(t, worker);
    return KEEL_OK;
}

keel_status keel_resident_fetch(const keel_trainer *t)
{
    struct keel_resident *r = t->resident;
    if (!r) return KEEL_OK;
    if (keel_resident_living(t) < 0) return raise_lost(t);
    if (!r->ahead) return KEEL_OK;
    bool there = is_current(t);
    for (int w; !there && (w = keel_resident_living(t)) >= 0;) {
        const keel_status s = fetch_from(t, w);
        there = s >= 0;
        if (s < 0) keel_resident_lose(&r->on[w], s);
    }
    if (!there) return keel_resident_go_back(t);
    settle(t, room_bytes(t));
    r->ahead = false;
    return KEEL_OK;
}

keel_status keel_resident_leave(const keel_trainer *t)
{
    const keel_status s = keel_resident_fetch(t);
    if (t->resident) t->store->resident_first = t->store->resident_end = 0;
    return s;
}
