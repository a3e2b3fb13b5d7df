/* Inside resident*.c: what the host knows of weights that live on devices. resident.c makes it,
 * resident_votes.c looks at gradients and weights, resident_moves.c moves, and resident_kept.c
 * brings what the host asks for, and what it goes back to.
 *
 * Behind the slots, a device has its report to the host, which has one of the same form in memory
 * that the device copies to:
 *
 *     [sums of tiles, for regularisers] [votes on tiles] [votes once joined]
 *     [the tiles, from the host] [sums of tiles, for a second pass: of weights, of steps]
 *
 * Behind that is its scratch.
 *
 * A gradient is joined when the regulariser's is added, and the mean of several steps is made. */
#ifndef KEEL_TRAIN_RESIDENT_IMPL_H
#define KEEL_TRAIN_RESIDENT_IMPL_H
#include "graph/on_device.h"
#include "train/resident.h"

struct keel_resident {
    int64_t first, end; /* elements of the store that live there */
    struct resident_mover {
        int64_t slot_at[KEEL_SLOTS_MAX]; /* bytes into a device's slots */
        int first_tile;                  /* its tiles, among those of all */
        int64_t iterations[2];           /* at each point */
        double number[2];
    } * mover;          /* [n_mover] */
    int n_tile;         /* of all movers */
    int64_t slots;      /* bytes of the slots on a device */
    int64_t sums;       /* bytes of the sums of tiles; 0: there is no regulariser */
    int64_t votes;      /* bytes; 0: the host looks at all gradients */
    int64_t norms;      /* bytes; 0: no norm is of gradients that are joined */
    int64_t tiles;      /* bytes; 0: devices vote on nothing */
    int64_t lengths;    /* bytes of the sums for second passes; 0: there is none */
    int64_t scratch_at; /* bytes: of what a device needs for the move of one weight */
    bool ahead;         /* the devices have moved since the store caught up */
    bool current;       /* the host has all that devices have: in the room, or in the store */
    bool came;          /* a part of the room is newer than the store: */
    int64_t settled;    /* bytes; what lies behind them */
    bool doubted;       /* a run has begun, and is not known to have gone well */
    int point;          /* the one that the host goes back to; the other is made */
    keel_loss_scale *scale, scale_at[2]; /* of the trainer, and at each point */
    char *others[2];                     /* at each point: of the store, besides those elements */
    char *room;                          /* those elements, and the slots, of one device */
    struct resident_on {
        char *slots;
        char *report;   /* on the host, as above; the sums are those of the weights that it has */
        bool has_tiles; /* they are on the device */
        keel_device_move *move; /* [n_weight] that wait until they are made together */
        int n_move;
        bool sends; /* copies into the room are under way */
        bool lost;
        keel_failure failure;
    } * on; /* [n_worker] */
};

static inline int64_t keel_resident_element(const keel_trainer *t)
{
    return (int64_t)keel_dtype_size(t->store->real);
}

/* Who moves a weight, and NULL: nobody does. */
static inline const keel_mover *keel_resident_mover(const keel_trainer *t, keel_variable v)
{
    for (int k = 0; k < t->n_mover; k++)
        if (t->mover[k].update.weight[v].n_tile > 0) return &t->mover[k];
    return NULL;
}

/* Tile i of a mover, among those of all. */
static inline int keel_resident_tile(const keel_trainer *t, const keel_mover *x, int i)
{
    return t->resident->mover[x - t->mover].first_tile + i;
}

static inline const keel_updater *keel_resident_updater(const keel_trainer *t, int mover)
{
    return &t->mover[mover].update;
}

/* Whether mean squares are kept by row and by column, so that one call of a device moves a weight.
 */
static inline bool keel_resident_factors(const keel_updater *u)
{
    return u->optimizer->factored[0] != NULL;
}

/* Whether steps are as long as their weights allow, which the host works out. */
static inline bool keel_resident_by_lengths(const keel_updater *u)
{
    return u->n_pass > 1 && !u->optimizer->orthogonal && !keel_resident_factors(u);
}

/* Bytes of the weights that live there. */
static inline int64_t keel_resident_range(const keel_trainer *t)
{
    return (t->resident->end - t->resident->first) * keel_resident_element(t);
}

static inline void keel_resident_lose(struct resident_on *on, keel_status failed)
{
    on->lost = true;
    on->sends = false; /* what has come of that is not trusted */
    keel_failure_take(&on->failure, failed);
}

/* ---- resident_kept.c ------------------------------------------------------------------------- */

/* The first worker whose device has not failed; -1: none. */
int keel_resident_living(const keel_trainer *t);
/* Before a worker's device moves: the copies that it sends have come, if there are any. waited: the
 * host has waited for its copies out, since its run. */
keel_status keel_resident_kept(const keel_trainer *t, int worker, bool waited);
/* When no device is left: the host has what it had at the point. Fails. */
keel_status keel_resident_go_back(const keel_trainer *t);

/* ---- resident_moves.c ------------------------------------------------------------------------ */

/* Where a device has what the mover's updater has in slot k of a weight. */
char *keel_resident_slot(const keel_trainer *t, int worker, const keel_mover *x, keel_variable v,
                         int k);
/* Enqueues a rule without slots, of a whole weight. */
void keel_resident_change(const keel_trainer *t, int worker, keel_variable v, keel_rule rule,
                          char *to, const char *from, keel_rule_numbers number);
/* Unless the device has them: what the host has in slots, to where it lives from now on. Before
 * gradients are joined, which reads the sums of earlier steps, else before they move. */
void keel_resident_enter(const keel_trainer *t, int worker);
/* The reduced gradients come to the device, once it is known that nobody writes them. */
void keel_resident_bring(const keel_trainer *t, int worker, const char *reduced);
/* The host has waited for that: another device may write the gradients of the next step there. */
void keel_resident_brought(const keel_trainer *t, int worker, const char *reduced);

/* ---- resident_votes.c ------------------------------------------------------------------------ */

/* When the trainer is made: whether devices vote, and how much room that takes; then, the tiles. */
void keel_resident_votes_plan(keel_trainer *t);
void keel_resident_votes_place(const keel_trainer *t, int worker);
/* Whether all devices can vote, and whether a mover clips by norms of gradients that are joined. */
bool keel_resident_can_vote(const keel_trainer *t);
bool keel_resident_norms_joined(const keel_mover *x);
/* Joins a gradient that the device has whole: the regulariser's is added, and it becomes the mean
 * of several steps in the step that moves. */
void keel_resident_join_weight(const keel_trainer *t, int worker, const keel_mover *x,
                               keel_variable v);

#endif
