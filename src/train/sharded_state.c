/* See sharded.h. The optimizer's state between the parts of processes and the model of the first
 * one. A slot is gathered at a time, by way of the gradients, which nobody needs between steps. */
#include "graph/across.h"
#include "model/parts.h"
#include "train/sharded.h"
#include <string.h>

/* ---- tiles and tensors ----------------------------------------------------------------------- */

/* Calls f for each tile that has memory in slot k, with its place in the tensor of the state. */
typedef void (*on_tile)(const keel_trainer *t, const keel_updater *u, int tile, int slot,
                        char *tensor);

static void each_tile(const keel_trainer *t, const keel_updater *u, int slot, on_tile f)
{
    const keel_model_compiled *c = &t->model->compiled;
    const int64_t element = (int64_t)keel_dtype_size(t->store->real);
    for (int i = 0; i < keel_model_trainable_count(t->model); i++) {
        const keel_variable v = keel_model_trainable(t->model, i);
        const struct keel_updated *w = &u->weight[v];
        char *tensor = c->state[i * c->n_slot + slot].data;
        if (&t->mover[c->moved_by[v]].update != u || u->slot_count[v * u->n_slot + slot] == 0)
            continue;
        for (int k = w->first_tile; k < w->first_tile + w->n_tile; k++)
            f(t, u, k, slot, tensor + (u->tile[k].offset - t->store->weight[v].offset) * element);
    }
}

static void read_tile(const keel_trainer *t, const keel_updater *u, int tile, int slot,
                      char *tensor)
{
    if (keel_updater_has(u, tile))
        memcpy(keel_updater_tile_slot(u, tile, slot), tensor,
               (size_t)u->tile[tile].count * keel_dtype_size(t->store->real));
}

void keel_sharded_read(keel_trainer *t)
{
    const keel_model_compiled *c = &t->model->compiled;
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        for (int slot = 0; slot < u->n_slot; slot++)
            if (c->iterations > 0 || !u->first_is_weight[slot]) each_tile(t, u, slot, read_tile);
    }
}

void keel_sharded_begin_slots(keel_trainer *t)
{
    const size_t element = keel_dtype_size(t->store->real);
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        for (int slot = 0; u->iterations == 0 && slot < u->n_slot; slot++)
            for (int i = 0; u->first_is_weight[slot] && i < u->n_tile; i++)
                if (keel_updater_has(u, i))
                    memcpy(keel_updater_tile_slot(u, i, slot),
                           t->store->master + u->tile[i].offset * (int64_t)element,
                           (size_t)u->tile[i].count * element);
    }
}

void keel_sharded_leave(keel_trainer *t)
{
    if (!t->sharded) return;
    t->sharded->gathered = false;
    keel_compiled_state_leave(&t->model->compiled);
}

/* ---- gathered -------------------------------------------------------------------------------- */

static char *gradients(const keel_trainer *t)
{
    return t->train.program->workspace[0].host.grad;
}

static void write_tile(const keel_trainer *t, const keel_updater *u, int tile, int slot,
                       char *tensor)
{
    const int64_t element = (int64_t)keel_dtype_size(t->store->real);
    const int owner = u->parts.owner[tile];
    const char *from = owner == 0
                           ? keel_updater_tile_slot(u, tile, slot)
                           : gradients(t) + t->sharded->at[owner] + u->parts.at[tile] * element;
    memcpy(tensor, from, (size_t)(u->tile[tile].count * element));
}

static keel_status gather_slot(keel_trainer *t, const keel_updater *u, int slot)
{
    keel_comm *c = t->strategy->comm;
    keel_sharded *x = t->sharded;
    const size_t element = keel_dtype_size(t->store->real);
    const int me = c->group.rank;
    size_t at = 0;
    for (int q = 0; q < c->group.count; q++) {
        const size_t bytes = (size_t)u->parts.count[q] * element;
        x->at[q] = at;
        at += bytes;
        c->send[q] = u->memory[slot];
        c->send_bytes[q] = q == 0 && me != 0 ? (size_t)u->parts.count[me] * element : 0;
        c->receive[q] = gradients(t) + x->at[q];
        c->receive_bytes[q] = me == 0 && q != 0 ? bytes : 0;
    }
    KEEL_TRY(keel_comm_exchange_noted(c));
    if (me == 0) each_tile(t, u, slot, write_tile);
    return KEEL_OK;
}

/* Once all have said that they are here, and process 0 has the memory. */
static keel_status gather(keel_trainer *t)
{
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        for (int slot = 0; slot < u->n_slot; slot++) {
            const keel_status s = gather_slot(t, u, slot);
            if (s < 0) { /* a part is lost */
                keel_sharded_leave(t);
                return s;
            }
        }
    }
    t->sharded->gathered = true;
    return KEEL_OK;
}

static keel_status make_room(keel_trainer *t)
{
    if (t->strategy->comm->group.rank != 0) return KEEL_OK;
    return keel_compiled_state_return(t->model, &t->model->compiled);
}

keel_status keel_sharded_gather(keel_trainer *t, keel_status mine)
{
    if (!t->sharded || t->sharded->gathered) return mine;
    if (mine >= 0) mine = make_room(t);
    const keel_status s = keel_comm_agree(t->strategy->comm, mine, NULL, 0, NULL);
    if (s < 0) keel_sharded_leave(t);
    return s < 0 ? s : gather(t);
}

keel_status keel_sharded_gather_if(keel_trainer *t, bool wanted)
{
    int64_t all[KEEL_PROCESSES_MAX];
    if (!t->sharded || t->sharded->gathered) return wanted ? KEEL_OK : KEEL_END;
    const int64_t takes = wanted && make_room(t) >= 0;
    const keel_status s = keel_comm_agree(t->strategy->comm, KEEL_OK, &takes, 1, all);
    if (s < 0) keel_sharded_leave(t);
    if (s < 0) return s;
    return all[0] ? gather(t) : KEEL_END;
}

keel_status keel_sharded_end(keel_trainer *t, keel_status mine)
{
    keel_comm *c = t->strategy->comm;
    keel_failure f = { 0 };
    if (!t->sharded || t->sharded->gathered || mine >= 0) return mine;
    keel_failure_take(&f, mine);
    if (!c->told && !c->lost) keel_comm_agree(c, mine, NULL, 0, NULL);
    if (!c->lost) (void)keel_sharded_gather(t, KEEL_OK); /* or the state is lost */
    c->told = true;
    return keel_failure_raise(&f);
}
