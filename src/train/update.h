/* Updates the weights of one program by one optimizer. It has the tiles, their owners, and the
 * optimizer's state. Several programs over one store may each have an updater, with its own
 * iterations, learning rate and slots; if they do not run at the same time, they may update the
 * same weights. */
#ifndef KEEL_TRAIN_UPDATE_H
#define KEEL_TRAIN_UPDATE_H
#include "graph/program.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedules/rate.h"

/* Of processes that each keep the slots of some tiles: where those of a tile are. */
typedef struct keel_updater_parts {
    int *owner;     /* [n_tile] the process; NULL: all slots are here */
    int64_t *at;    /* [n_tile] elements, into each of its memory[] */
    int64_t *count; /* [n_process] elements that each process has there */
} keel_updater_parts;

typedef struct keel_updater {
    const keel_program *program; /* borrowed, like its store and lanes */
    const keel_optimizer *optimizer;
    const void *args; /* borrowed */
    void *undecayed;  /* args without weight decay, for weights without; NULL: there are none */
    int64_t iterations;
    double learning_rate;
    keel_object schedule; /* borrowed; unless its type is NULL, it replaces learning_rate */
    double number;        /* see keel_optimizer.number */
    int n_slot, n_pass;
    int average, accumulator; /* slots; -1: none */
    bool moves;               /* this step moves weights; else it only adds up gradients */
    int n_tile;
    keel_tile *tile; /* [n_tile] of all trained weights, in flat order */
    int *first_tile; /* [n_worker + 1] the first tile of each owner */
    keel_updater_parts parts;
    struct keel_updated {
        int first_tile, n_tile;           /* 0 tiles: not trained */
        char *scratch;                    /* NULL: none */
    } * weight;                           /* [n_weight] */
    char **slot;                          /* [n_weight * n_slot] NULL: no memory, or parts */
    int64_t *slot_count;                  /* [n_weight * n_slot] elements */
    bool first_is_weight[KEEL_SLOTS_MAX]; /* see keel_slot */
    bool given;                           /* its state was set: such slots stay what they are */
    char *memory[KEEL_SLOTS_MAX + 1];     /* of each slot, for all weights; the last is scratch */
    int64_t held[KEEL_SLOTS_MAX + 1];     /* bytes of memory[] */
    int64_t bytes;                        /* their sum */
    int64_t untouched;                    /* of them, 0 and not written yet: not in memory */
    double *sum;                 /* [KEEL_SUM_PASSES][n_tile][KEEL_UPDATE_SUMS] of this step */
    double rate_now, number_now; /* in this step */
} keel_updater;

/* Make an updater of the weights with moves [n_weight] of a training program, with slots as before
 * the first step and iterations 0. KEEL_EARG: the optimizer does not accept the arguments;
 * KEEL_EUNSUP: it moves whole weights, and processes are to keep parts of them. After a failure
 * nothing needs freeing. */
keel_status keel_updater_create(keel_updater *u, keel_program *p, const keel_object *optimizer,
                                const bool *moves);
void keel_updater_free(keel_updater *u);
/* Slots that begin as the weight begin as it is now, if no step was made and none was set. */
void keel_updater_begin_slots(const keel_updater *u);

/* Called by one thread: before the workers of a step begin, and after its commit. */
keel_status keel_updater_begin(keel_updater *u); /* KEEL_ENUMERIC: no learning rate */
void keel_updater_end(keel_updater *u);

/* Update a tile, or a part of one, by its gradient; for optimizers of one pass. */
void keel_updater_move(const keel_updater *u, const keel_tile *part, const void *grad,
                       double scale);

/* The move of a whole weight, with the host's pointers, for a device to make. The optimizer has
 * such moves. pass, sum: see keel_optimizer.move; sum NULL: none is needed. */
void keel_updater_describe(const keel_updater *u, keel_variable v, int pass, const double *sum,
                           double scale, keel_device_move *out);

/* The same of an optimizer that keeps mean squares by row and by column; out: all but pointers. */
void keel_updater_factor(const keel_updater *u, keel_variable v, double scale,
                         keel_device_factored *out);

/* For optimizers of several passes. In each pass every owner calls keel_updater_pass for its tiles,
 * with the result of keel_updater_whole for the tile's weight; all workers meet before the next
 * pass. grad: the gradient of the whole weight, from all owners. */
void keel_updater_whole(const keel_updater *u, keel_variable v, int pass, const void *grad,
                        keel_update_whole *out);
void keel_updater_pass(const keel_updater *u, int tile, int pass, keel_update_whole *whole,
                       double scale);
/* If a pass is by rows, every worker calls keel_updater_rows for each weight instead, with its
 * share. */
bool keel_updater_by_rows(const keel_updater *u, int pass);
void keel_updater_rows(const keel_updater *u, keel_variable v, int pass, keel_update_whole *whole,
                       int share, int n_share);

/* Of optimizers that add up gradients of several steps. The reduced gradient of a tile becomes the
 * mean of these steps, and *norm (NULL: not asked for) the sum of its squares; nothing else
 * changes. Once the step is sure, keep adds the gradient of a step that does not move, or forgets
 * all. */
void keel_updater_join(const keel_updater *u, const keel_tile *tile, void *grad, double *norm);
void keel_updater_keep(const keel_updater *u, const keel_tile *tile, const void *grad);

/* Moving averages, where the optimizer has them: after a tile was moved, and when training ends:
 * weights become their averages; or averages the weights, if they have changed places. */
void keel_updater_average(const keel_updater *u, const keel_tile *tile);
void keel_updater_finish(const keel_updater *u, bool averaged);
/* How much of an average this step keeps, and whether it ends with weights that are averages. */
double keel_updater_kept(const keel_updater *u);
bool keel_updater_overwrites(const keel_updater *u);

/* Of processes that keep parts. Update tile i, which this one has, beside the weights: they stay,
 * and what they become is left in the place of `grad`, the reduced gradient. room: of a tile.
 * has_gradient: else only the average follows the weight. */
void keel_updater_move_apart(const keel_updater *u, int i, void *grad, double scale,
                             bool has_gradient, void *room);
/* Whether a step leaves other weights. */
static inline bool keel_updater_changes(const keel_updater *u)
{
    return u->moves || u->average >= 0;
}

/* Whether this process updates tile i. */
static inline bool keel_updater_has(const keel_updater *u, int i)
{
    return !u->parts.owner || u->parts.owner[i] == u->program->lanes->process;
}
/* Slot k of tile i of u->tile, alike, which this process has. */
char *keel_updater_tile_slot(const keel_updater *u, int i, int k);

/* The arguments by which a weight moves. */
static inline const void *keel_updater_args(const keel_updater *u, keel_variable v)
{
    return u->undecayed && u->program->store->weight[v].info.undecayed ? u->undecayed : u->args;
}

/* Elements of a weight's first tile: all its others have as many, but for the last. */
static inline int64_t keel_updater_tile_count(const keel_updater *u, keel_variable v)
{
    return u->tile[u->weight[v].first_tile].count;
}

/* Slot k of a weight; if the slot has the weight's shape, from element `first` on. */
static inline char *keel_updater_slot(const keel_updater *u, keel_variable v, int k, int64_t first)
{
    return u->slot[v * u->n_slot + k] + first * (int64_t)keel_dtype_size(u->program->store->real);
}

#endif
