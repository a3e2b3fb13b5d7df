/* See live.h. */
#include "train/live.h"
#include "base/hash.h"
#include "base/memory.h"
#include "optimizers/schedules/rate.h"
#include "tensor/dtype.h"
#include "train/resident.h"
#include "train/sharded.h"
#include <string.h>

/* ---- the two copies -------------------------------------------------------------------------- */

/* A weight, or a slot of one, as the model has it and as the trainer has it. */
typedef struct both {
    char *model, *trainer;
    size_t bytes;
} both;

static both weight_of(const keel_trainer *t, int v)
{
    const size_t element = keel_dtype_size(t->store->real);
    return (both){ .model = t->model->weight[v].data,
                   .trainer = keel_store_data(t->store, v),
                   .bytes = (size_t)t->store->weight[v].count * element };
}

/* Slot k of the i-th trainable weight. No bytes: it has none. */
static both slot_of(const keel_trainer *t, int i, int k)
{
    const keel_model_compiled *c = &t->model->compiled;
    const keel_variable v = keel_model_trainable(t->model, i);
    const keel_updater *u = &t->mover[c->moved_by[v]].update;
    if (k >= u->n_slot) return (both){ 0 };
    const int64_t count = u->slot_count[v * u->n_slot + k];
    return (both){ .model = c->state[i * c->n_slot + k].data,
                   .trainer = u->slot[v * u->n_slot + k],
                   .bytes = (size_t)count * keel_dtype_size(t->store->real) };
}

/* The model's weights may have changed since its state was made, so slots that begin as the weight
 * are the trainer's. */
static bool begins(const keel_trainer *t, int i, int k)
{
    const keel_model_compiled *c = &t->model->compiled;
    const int mover = c->moved_by[keel_model_trainable(t->model, i)];
    return c->iterations == 0 && t->mover[mover].update.first_is_weight[k];
}

/* leaves: whoever it is copied from needs it no more. */
static void copy(both b, bool to_model, bool leaves)
{
    if (to_model)
        keel_copy(b.model, b.trainer, b.bytes, leaves);
    else
        keel_copy(b.trainer, b.model, b.bytes, leaves);
}

static void copy_weights(keel_trainer *t, bool to_model, bool leaves)
{
    if (!to_model && t->model->readers) leaves = false;
    for (int v = 0; v < t->model->n_weight; v++) copy(weight_of(t, v), to_model, leaves);
}

static void copy_state(keel_trainer *t, bool to_model, bool leaves)
{
    const keel_model_compiled *c = &t->model->compiled;
    if (t->options.shard_optimizer) { /* what processes have is gathered by all of them */
        if (!to_model) keel_sharded_read(t);
        return;
    }
    for (int i = 0; c->state && i < keel_model_trainable_count(t->model); i++)
        for (int k = 0; k < c->n_slot; k++) {
            const both b = slot_of(t, i, k);
            if (b.bytes > 0 && (to_model || !begins(t, i, k))) copy(b, to_model, leaves);
        }
}

static int64_t leave_one(both b, bool only_counts)
{
    if (!keel_leaves(b.bytes)) return 0;
    if (!only_counts) keel_leave(b.model, b.bytes);
    return (int64_t)b.bytes;
}

/* The model's own copies, which are old then: they need no memory until they are pulled. */
static int64_t leave(const keel_trainer *t, int what, bool only_counts)
{
    const keel_model_compiled *c = &t->model->compiled;
    const bool state = what & KEEL_LIVE_STATE && c->state && !t->options.shard_optimizer;
    int64_t sum = 0;
    if (t->model->readers) what &= ~KEEL_LIVE_WEIGHTS;
    for (int v = 0; what & KEEL_LIVE_WEIGHTS && v < t->model->n_weight; v++)
        sum += leave_one(weight_of(t, v), only_counts);
    for (int i = 0; state && i < keel_model_trainable_count(t->model); i++)
        for (int k = 0; k < c->n_slot; k++) sum += leave_one(slot_of(t, i, k), only_counts);
    return sum;
}

/* Once only, since who has pulled them is likely to do it again. */
static void leave_copies(keel_model_live *l, int what)
{
    what &= ~l->left;
    leave(l->trainer, what, false);
    l->left |= what;
    l->pulled &= ~what;
}

/* What the trainer takes over from the model. Before the first step there is no state yet, and some
 * slots begin as the weight does then. */
static int taken_over(const keel_trainer *t)
{
    const bool state = t->n_mover > 0 && t->model->compiled.iterations > 0;
    return KEEL_LIVE_WEIGHTS | (state ? KEEL_LIVE_STATE : 0);
}

int64_t keel_live_leaves(const keel_trainer *t)
{
    return leave(t, taken_over(t), true);
}

/* ---- pulling and taking ---------------------------------------------------------------------- */

/* leaves: the trainer ends, and gives its memory back as it is copied. */
static void pull_from(keel_trainer *t, int what, bool leaves)
{
    keel_model_compiled *c = &t->model->compiled;
    /* a device that fails here is told by the next step, or at the end of the fit */
    if (what & (KEEL_LIVE_WEIGHTS | KEEL_LIVE_STATE)) (void)keel_resident_fetch(t);
    if (what & KEEL_LIVE_WEIGHTS) copy_weights(t, true, leaves);
    if (what & KEEL_LIVE_WEIGHTS && t->n_mover > 0) t->model->changes++;
    if (!t->train.program) return;
    if (what & KEEL_LIVE_NUMBERS) {
        for (int k = 0; k < t->n_mover; k++) {
            c->iterations = t->mover[k].update.iterations;
            c->optimizer[k].number = t->mover[k].update.number;
        }
        if (t->loss_scale.on) {
            c->loss_scale = t->loss_scale.now;
            c->good_steps = t->loss_scale.good;
        }
    }
    if (what & KEEL_LIVE_STATE) copy_state(t, true, leaves);
}

static void pull(void *trainer, int what)
{
    pull_from(trainer, what, false);
}

static void take_numbers(keel_trainer *t)
{
    const keel_model_compiled *c = &t->model->compiled;
    for (int k = 0; k < t->n_mover; k++) {
        keel_updater *u = &t->mover[k].update;
        u->schedule = c->optimizer[k].rate;
        u->learning_rate = c->optimizer[k].learning_rate;
        u->number = c->optimizer[k].number;
        u->iterations = c->iterations;
    }
    if (t->loss_scale.on) {
        t->loss_scale.now = c->loss_scale;
        t->loss_scale.good = c->good_steps;
    }
}

/* Before the first step, slots that begin as the weight begin as the weight that was set. */
static void begin_slots(keel_trainer *t)
{
    if (t->sharded) {
        keel_sharded_begin_slots(t);
        return;
    }
    for (int k = 0; k < t->n_mover; k++) keel_updater_begin_slots(&t->mover[k].update);
}

void keel_live_take_over(keel_trainer *t)
{
    copy_weights(t, false, true);
    t->took = true;
}

void keel_live_give_back(keel_trainer *t)
{
    if (t->took) copy_weights(t, true, true);
    t->took = false;
}

void keel_live_begin(keel_model_live *l, keel_trainer *t)
{
    t->took = false;
    *l = (keel_model_live){ .pull = pull, .trainer = t, .pulled = KEEL_LIVE_ALL };
    t->model->live = l;
    const int what = taken_over(t);
    if (t->n_mover > 0) copy_state(t, false, what & KEEL_LIVE_STATE);
    leave_copies(l, what);
}

void keel_live_stepped(keel_model_live *l)
{
    leave_copies(l, l->pulled & (KEEL_LIVE_WEIGHTS | KEEL_LIVE_STATE));
    l->pulled = 0;
    keel_sharded_leave(l->trainer);
}

keel_status keel_live_gather(keel_model_live *l)
{
    return l->trainer ? keel_sharded_gather(l->trainer, KEEL_OK) : KEEL_OK;
}

/* Callbacks of other processes must have set the same, or weights would drift apart unseen. */
static void note_set(keel_trainer *t, int changed)
{
    const keel_model *m = t->model;
    const size_t each = keel_dtype_size(m->dtype);
    for (int k = 0; k < t->n_mover && changed & KEEL_LIVE_NUMBERS; k++) {
        const keel_model_optimizer *o = &m->compiled.optimizer[k];
        const keel_rate *schedule = (const keel_rate *)o->rate.type;
        const double rate =
            schedule ? schedule->at(o->rate.args, m->compiled.iterations) : o->learning_rate;
        keel_fingerprint_add(&t->set, &rate, sizeof rate);
    }
    for (int v = 0; v < m->n_weight && changed & KEEL_LIVE_WEIGHTS; v++)
        keel_fingerprint_add(&t->set, m->weight[v].data,
                             (size_t)keel_shape_count(&m->weight[v].info.spec.shape) * each);
}

bool keel_live_take(keel_model_live *l)
{
    keel_trainer *t = l->trainer;
    const int changed = l->changed;
    l->changed = 0;
    if (changed && t->strategy->comm) note_set(t, changed);
    if (changed & (KEEL_LIVE_WEIGHTS | KEEL_LIVE_STATE))
        (void)keel_resident_leave(t); /* what fails is told by the next step, or at the end */
    if (changed & KEEL_LIVE_NUMBERS) take_numbers(t);
    if (t->n_mover && changed & KEEL_LIVE_STATE) copy_state(t, false, false);
    if (changed & KEEL_LIVE_WEIGHTS) {
        copy_weights(t, false, false);
        begin_slots(t);
        keel_store_refresh(t->store, 0, 1, NULL);
    }
    return changed != 0;
}

void keel_live_end(keel_model_live *l)
{
    keel_trainer *t = l->trainer;
    if (!t) return;
    pull_from(t, KEEL_LIVE_ALL & ~l->pulled, true);
    t->model->live = NULL;
    l->trainer = NULL;
}
