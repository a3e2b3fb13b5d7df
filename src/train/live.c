/* See live.h. */
#include "train/live.h"
#include "train/resident.h"
#include "train/sharded.h"
#include <string.h>

static void copy_weights(keel_trainer *t, bool to_model)
{
    const keel_model *m = t->model;
    const size_t element = keel_dtype_size(t->store->real);
    for (int v = 0; v < m->n_weight; v++) {
        void *stored = keel_store_data(t->store, v), *own = m->weight[v].data;
        memcpy(to_model ? own : stored, to_model ? stored : own,
               (size_t)t->store->weight[v].count * element);
    }
    if (to_model) t->model->changes++;
}

static void pull(void *trainer, int what)
{
    keel_trainer *t = trainer;
    keel_model_compiled *c = &t->model->compiled;
    /* a device that fails here is told by the next step, or at the end of the fit */
    if (what & (KEEL_LIVE_WEIGHTS | KEEL_LIVE_STATE)) (void)keel_resident_fetch(t);
    if (what & KEEL_LIVE_WEIGHTS) copy_weights(t, true);
    if (what & KEEL_LIVE_WEIGHTS) t->model->changes++;
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
    if (what & KEEL_LIVE_STATE) keel_trainer_copy_state(t, true);
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
    const size_t element = keel_dtype_size(t->store->real);
    if (t->sharded) {
        keel_sharded_begin_slots(t);
        return;
    }
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        for (int v = 0; u->iterations == 0 && v < t->store->n_weight; v++)
            for (int i = 0; i < u->n_slot; i++)
                if (u->first_is_weight[i] && u->slot_count[v * u->n_slot + i] > 0)
                    memcpy(u->slot[v * u->n_slot + i], keel_store_data(t->store, v),
                           (size_t)u->slot_count[v * u->n_slot + i] * element);
    }
}

void keel_live_begin(keel_model_live *l, keel_trainer *t)
{
    *l = (keel_model_live){ .pull = pull, .trainer = t, .pulled = KEEL_LIVE_ALL };
    t->model->live = l;
}

void keel_live_stepped(keel_model_live *l)
{
    l->pulled = 0;
    keel_sharded_leave(l->trainer);
}

keel_status keel_live_gather(keel_model_live *l)
{
    return l->trainer ? keel_sharded_gather(l->trainer, KEEL_OK) : KEEL_OK;
}

bool keel_live_take(keel_model_live *l)
{
    keel_trainer *t = l->trainer;
    const int changed = l->changed;
    l->changed = 0;
    if (changed & (KEEL_LIVE_WEIGHTS | KEEL_LIVE_STATE))
        (void)keel_resident_leave(t); /* what fails is told by the next step, or at the end */
    if (changed & KEEL_LIVE_NUMBERS) take_numbers(t);
    if (t->n_mover && changed & KEEL_LIVE_STATE) keel_trainer_copy_state(t, false);
    if (changed & KEEL_LIVE_WEIGHTS) {
        copy_weights(t, false);
        begin_slots(t);
        keel_store_refresh(t->store, 0, 1, NULL);
    }
    return changed != 0;
}

void keel_live_end(keel_model_live *l)
{
    keel_trainer *t = l->trainer;
    if (!t) return;
    keel_model_pull(t->model, KEEL_LIVE_ALL);
    t->model->live = NULL;
    l->trainer = NULL;
}
