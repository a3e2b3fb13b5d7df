/* A trainer: a model compiled for a strategy. It holds the weights as flat ranges (the store) and
 * the programs that run on them; the model's own copies are read at the start and written at the
 * end. */
#ifndef KEEL_TRAIN_TRAINER_H
#define KEEL_TRAIN_TRAINER_H
#include "data/feed.h"
#include "graph/program.h"
#include "model/model.h"
#include "train/programs.h"
#include "train/strategy.h"
#include "train/update.h"

/* What one worker tells the others at the commit point. */
typedef struct keel_vote {
    keel_variable bad; /* a weight whose gradient is not finite; -1: none */
    bool bounded;      /* are its parts of what tiled gradients are made of small? See step.c */
    int64_t ended;     /* when it was through with the step, where that is timed */
    char pad[104];     /* votes do not share cache lines */
} keel_vote;

typedef struct keel_trainer {
    keel_model *model;
    keel_strategy *strategy;
    keel_store *store;
    keel_arenas *arenas;
    keel_scored train, test;       /* in use */
    keel_programs trained, tested; /* and for other shapes of rows */
    keel_program_options options;
    bool *trains; /* [n_weight] */
    bool unfused;

    keel_updater update;   /* of the training program */
    int *largest_tile;     /* [n_worker] the owner's largest tile of a tiled weight; -1: none */
    bool all_tiled;        /* every tile is made by its owner */
    bool may_move_at_once; /* tiled weights' tiles may be made after the commit point */
    double *tile_norm;     /* [n_tile] sum of squares of the reduced gradient */
    double *tile_penalty;  /* [n_tile] its share of the regularisers */
    double *tile_scale;    /* [n_tile] what the update still has to multiply it by */
    bool needs_norms;
    double penalty; /* of the regularisers, while the weights are only read */

    /* of the running step */
    const keel_batch *batch;
    const keel_bound *bound;
    keel_vote *vote; /* [n_worker] */
} keel_trainer;

typedef struct keel_trainer_options {
    const char *without_kernels;
    bool reference_kernels;
    bool unfused; /* every op by itself */
    keel_float32 float32;
    bool dry;     /* no activations, no gradients: for the plan */
    int programs; /* of each kind, at most, where batches have several shapes; 0: the default */
} keel_trainer_options;

/* What a program is compiled for: steps of at most `rows` rows, whose fields are paired like this.
 */
typedef struct keel_trainer_work {
    const keel_pairing *pairing; /* read while the trainer is made; NULL: no such program */
    int64_t rows;
    const keel_data_field *batch; /* where pairing->open: the fields of the first batch */
} keel_trainer_work;

/* Compile for training and for inference, as far as there is work. The calling thread has entered
 * the team. */
keel_status keel_trainer_create(keel_trainer **out, keel_model *m, keel_strategy *s,
                                const keel_trainer_work *train, const keel_trainer_work *test,
                                const keel_trainer_options *options);
void keel_trainer_destroy(keel_trainer *t);

/* Before a step: the program of the batch's shapes becomes t->train or t->test; it is compiled
 * where there is none yet. On failure the one before stays. Costs nothing where rows have one
 * shape. */
keel_status keel_trainer_meet(keel_trainer *t, bool training, const keel_batch *b);

/* Weights and optimizer state back into the model. */
void keel_trainer_store(keel_trainer *t);

/* Prepare steps of these many rows. */
keel_status keel_trainer_prepare(keel_scored *s, const int64_t *rows, int n);

#endif
