/* Moving the weights of one program by one optimizer: the tiles, who owns which, and what the
 * optimizer keeps beside the weights. Programs over one store may each have an updater of their
 * own, with iterations, learning rate and slots of its own; those that do not run at the same time
 * may move the same weights. */
#ifndef KEEL_TRAIN_UPDATE_H
#define KEEL_TRAIN_UPDATE_H
#include "graph/program.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedules/rate.h"

typedef struct keel_updater {
    const keel_program *program; /* borrowed, like its store and lanes */
    const keel_optimizer *optimizer;
    const void *args; /* borrowed */
    int64_t iterations;
    double learning_rate;
    keel_object schedule; /* borrowed; type not NULL: it says the rate in place of learning_rate */
    double number;        /* see keel_optimizer.number */
    int n_slot, n_pass;
    int n_tile;
    keel_tile *tile; /* [n_tile] of the weights that the program trains, in flat order */
    int *first_tile; /* [n_worker + 1] tiles of each owner */
    struct keel_updated {
        int first_tile, n_tile;       /* 0 tiles: not trained */
        char *scratch;                /* NULL: none */
    } * weight;                       /* [n_weight] */
    char **slot;                      /* [n_weight * n_slot] NULL: no memory */
    int64_t *slot_count;              /* [n_weight * n_slot] elements */
    char *memory[KEEL_SLOTS_MAX + 1]; /* of each slot of all weights; the last: scratch */
    int64_t bytes;                    /* of all of them */
    double *sum;                 /* [KEEL_SUM_PASSES][n_tile][KEEL_UPDATE_SUMS] made in this step */
    double rate_now, number_now; /* in force in this step */
} keel_updater;

/* For a program that trains; slots are as before the first step, iterations 0. KEEL_EARG: arguments
 * that the optimizer does not take. On failure there is nothing to free. */
keel_status keel_updater_create(keel_updater *u, keel_program *p, const keel_object *optimizer);
void keel_updater_free(keel_updater *u);

/* Before the workers of a step begin, and when it has been committed; by one thread. */
void keel_updater_begin(keel_updater *u);
void keel_updater_end(keel_updater *u);

/* Move a tile, or a part of one, by its gradient; optimizers of one pass. */
void keel_updater_move(const keel_updater *u, const keel_tile *part, const void *grad,
                       double scale);

/* Optimizers of several passes: for each pass, every owner calls keel_updater_pass for its tiles,
 * with what keel_updater_whole says of the tile's weight in this pass, and all workers meet before
 * the next. grad: the whole weight's, of all owners. */
void keel_updater_whole(const keel_updater *u, keel_variable v, int pass, const void *grad,
                        keel_update_whole *out);
void keel_updater_pass(const keel_updater *u, int tile, int pass, keel_update_whole *whole,
                       double scale);

/* Slot k of a weight, at an element of it where it is alike. */
static inline char *keel_updater_slot(const keel_updater *u, keel_variable v, int k, int64_t first)
{
    return u->slot[v * u->n_slot + k] + first * (int64_t)keel_dtype_size(u->program->store->real);
}

#endif
