/* See sharded.h. What a step does: how the weights come to be the same everywhere. How the state is
 * gathered: sharded_state.c. */
#include "train/sharded.h"
#include "base/memory.h"
#include "graph/across.h"
#include "graph/buckets.h"
#include "train/mover.h"
#include <string.h>

/* ---- made and ended -------------------------------------------------------------------------- */

/* Whether others need the norms and penalties of its tiles. */
static bool tells(const keel_mover *x)
{
    return x->needs_norms || x->penalized;
}

static keel_status make_facts(keel_trainer *t, keel_sharded *x)
{
    const size_t n_process = (size_t)t->strategy->lanes.n_process;
    for (int k = 0; k < t->n_mover; k++)
        if (tells(&t->mover[k])) x->n_fact += t->mover[k].update.n_tile;
    x->fact = keel_calloc((size_t)x->n_fact + 1, sizeof(double[2]));
    x->at = keel_calloc(n_process, sizeof *x->at);
    x->bytes = keel_calloc(n_process, sizeof *x->bytes);
    return x->fact && x->at && x->bytes ? KEEL_OK : KEEL_ENOMEM;
}

keel_status keel_sharded_create(keel_trainer *t)
{
    const size_t n_worker = (size_t)t->strategy->lanes.n_worker;
    if (!t->options.shard_optimizer) return KEEL_OK;
    keel_sharded *x = t->sharded = keel_calloc(1, sizeof *x);
    if (!x) return KEEL_ENOMEM;
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        for (int i = 0; i < u->n_tile; i++)
            if (u->tile[i].count > x->room_bytes) x->room_bytes = u->tile[i].count;
    }
    x->room_bytes *= (int64_t)keel_dtype_size(t->store->real);
    x->room = keel_aligned_calloc(n_worker, (size_t)x->room_bytes + 1);
    return x->room ? make_facts(t, x) : KEEL_ENOMEM;
}

void keel_sharded_free(keel_trainer *t)
{
    keel_sharded *x = t->sharded;
    if (!x) return;
    keel_free(x->room);
    keel_free(x->fact);
    keel_free(x->at);
    keel_free(x->bytes);
    keel_free(x);
    t->sharded = NULL;
}

int64_t keel_sharded_bytes(const keel_trainer *t)
{
    const keel_sharded *x = t->sharded;
    if (!x) return 0;
    return t->strategy->lanes.n_worker * x->room_bytes + x->n_fact * (int64_t)sizeof(double[2]);
}

/* ---- vote ------------------------------------------------------------------------------------ */

/* Lays out the facts, and copies those of one process there, or those of all others back. */
static void copy_facts(keel_trainer *t, bool out)
{
    keel_sharded *x = t->sharded;
    double *at = x->fact;
    for (int q = 0; q < t->strategy->lanes.n_process; q++) {
        const bool own = q == t->strategy->lanes.process;
        x->at[q] = (size_t)(at - x->fact) * sizeof *at;
        for (int k = 0; k < t->n_mover; k++) {
            keel_mover *m = &t->mover[k];
            for (int i = 0; tells(m) && i < m->update.n_tile; i++) {
                if (m->update.parts.owner[i] != q) continue;
                if (out && own) {
                    at[0] = m->tile_norm[i];
                    at[1] = m->tile_penalty[i];
                } else if (!out) {
                    m->tile_norm[i] = at[0];
                    m->tile_penalty[i] = at[1];
                }
                at += 2;
            }
        }
        x->bytes[q] = (size_t)(at - x->fact) * sizeof *at - x->at[q];
    }
}

int64_t keel_sharded_vote_bytes(const keel_trainer *t)
{
    if (!t->sharded || t->sharded->n_fact == 0) return 0;
    copy_facts((keel_trainer *)t, true);
    return (int64_t)t->sharded->bytes[t->strategy->lanes.process] *
           (t->strategy->lanes.n_process - 1);
}

/* Of two weights whose gradients are not finite, the one that a single process names. */
static keel_variable first_bad(const keel_store *s, keel_variable a, keel_variable b)
{
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return s->weight[a].offset <= s->weight[b].offset ? a : b;
}

static keel_status vote(void *trainer)
{
    keel_trainer *t = trainer;
    keel_comm *c = t->strategy->comm;
    int64_t own = -1, bad[KEEL_PROCESSES_MAX];
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) {
        own = first_bad(t->store, (keel_variable)own, t->vote[w].bad);
        t->vote[w].bad = -1;
    }
    keel_status s = keel_comm_agree(c, KEEL_OK, &own, 1, bad);
    if (s >= 0 && t->sharded->n_fact > 0) {
        copy_facts(t, true);
        s = keel_comm_all_gather(c, t->sharded->fact, t->sharded->at, t->sharded->bytes);
        if (s >= 0) copy_facts(t, false);
    }
    if (s < 0) {
        keel_failure_take(&t->common, s);
        return s;
    }
    for (int q = 0; q < c->group.count; q++)
        t->vote[0].bad = first_bad(t->store, t->vote[0].bad, (keel_variable)bad[q]);
    return KEEL_OK;
}

void keel_sharded_vote(keel_trainer *t, int worker)
{
    keel_program_meet_across(t->train.program, t->strategy->team, worker, vote, t);
}

/* ---- move, share, agree, take ---------------------------------------------------------------- */

static char *landing(const keel_trainer *t, int64_t offset)
{
    return t->train.program->workspace[0].host.grad +
           offset * (int64_t)keel_dtype_size(t->store->real);
}

static void move_tiles(const keel_trainer *t, const keel_mover *x, int worker)
{
    const keel_updater *u = &x->update;
    const double of_all = keel_mover_scale_of_all(x);
    char *room = t->sharded->room + worker * t->sharded->room_bytes;
    for (int i = u->first_tile[worker]; i < u->first_tile[worker + 1]; i++) {
        const keel_tile *tile = &u->tile[i];
        if (!keel_updater_has(u, i)) continue;
        const double scale = keel_mover_scale(x, tile->variable, of_all) * x->tile_scale[i];
        keel_updater_move_apart(u, i, landing(t, tile->offset), scale,
                                keel_mover_has_gradient(t, tile->variable), room);
    }
}

/* A worker's share of the tiles of all processes. */
static void take_tiles(const keel_trainer *t, const keel_updater *u, int worker)
{
    const int64_t element = (int64_t)keel_dtype_size(t->store->real);
    const int64_t n = u->n_tile, n_worker = t->strategy->lanes.n_worker;
    if (!keel_updater_changes(u)) return;
    for (int64_t i = n * worker / n_worker; i < n * (worker + 1) / n_worker; i++) {
        const keel_tile *tile = &u->tile[i];
        memcpy(t->store->master + tile->offset * element, landing(t, tile->offset),
               (size_t)(tile->count * element));
    }
}

static bool changes_weights(const keel_trainer *t)
{
    for (int k = 0; k < t->n_mover; k++)
        if (keel_updater_changes(&t->mover[k].update)) return true;
    return false;
}

static keel_status share(void *trainer)
{
    keel_trainer *t = trainer;
    keel_status s = keel_buckets_share(t->train.program);
    if (s >= 0) s = keel_comm_agree(t->strategy->comm, KEEL_OK, NULL, 0, NULL);
    if (s < 0) keel_failure_take(&t->common, s);
    return s;
}

void keel_sharded_apply(keel_trainer *t, int worker)
{
    keel_program *p = t->train.program;
    for (int k = 0; k < t->n_mover; k++) move_tiles(t, &t->mover[k], worker);
    if (!changes_weights(t)) return; /* gradients were added up */
    keel_program_meet_across(p, t->strategy->team, worker, share, t);
    if (p->failure[0].status < 0) return;
    for (int k = 0; k < t->n_mover; k++) take_tiles(t, &t->mover[k].update, worker);
}

/* ---- the end --------------------------------------------------------------------------------- */

keel_status keel_sharded_finish(keel_trainer *t)
{
    const size_t element = keel_dtype_size(t->store->real);
    bool any = false;
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        if (u->average < 0 || u->iterations == 0) continue;
        any = true;
        for (int i = 0; i < u->n_tile; i++)
            if (keel_updater_has(u, i))
                memcpy(landing(t, u->tile[i].offset), keel_updater_tile_slot(u, i, u->average),
                       (size_t)u->tile[i].count * element);
    }
    if (!any) return KEEL_OK;
    KEEL_TRY(keel_comm_agree(t->strategy->comm, KEEL_OK, NULL, 0, NULL));
    KEEL_TRY(share(t));
    for (int k = 0; k < t->n_mover; k++) {
        const keel_updater *u = &t->mover[k].update;
        if (u->average < 0 || u->iterations == 0) continue;
        for (int i = 0; i < u->n_tile; i++)
            memcpy(t->store->master + u->tile[i].offset * (int64_t)element,
                   landing(t, u->tile[i].offset), (size_t)u->tile[i].count * element);
    }
    return KEEL_OK;
}
