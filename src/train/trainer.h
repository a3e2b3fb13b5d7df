/* A trainer: a model compiled for a strategy. It has the weights as flat ranges (the store) and the
 * programs that use them. The model's own copies are read at the start and written at the end. */
#ifndef KEEL_TRAIN_TRAINER_H
#define KEEL_TRAIN_TRAINER_H
#include "data/feed.h"
#include "graph/program.h"
#include "keel/function.h"
#include "model/model.h"
#include "train/loss_scale.h"
#include "train/orthogonal.h"
#include "train/programs.h"
#include "train/spectral.h"
#include "train/strategy.h"
#include "train/update.h"

/* Why a process wants no further step. */
typedef enum keel_stops {
    KEEL_STOPS_NOT,
    KEEL_STOPS_ITSELF,  /* a callback has stopped it */
    KEEL_STOPS_OUTSIDE, /* a signal has */
} keel_stops;

/* The vote of one worker at the commit point. */
typedef struct keel_vote {
    keel_variable bad;   /* a weight whose gradient is not finite; -1: none */
    bool bounded;        /* its operands of tiled gradients are small; see step_worker.c */
    keel_status checked; /* a failure: its device has not voted ... */
    keel_status joined;  /* ... or not on gradients that it joins, after that */
    int64_t ended;       /* time when it finished the step, if steps are timed */
    char pad[96];        /* so that votes do not share cache lines */
} keel_vote;

/* An optimizer with the weights that it moves, and what a step notes of their tiles. */
typedef struct keel_mover {
    keel_updater update;  /* for the training program */
    int *largest_tile;    /* [n_worker] the owner's largest tile of a tiled weight; -1: none */
    double *tile_norm;    /* [n_tile] sum of squares of the reduced gradient */
    double *tile_penalty; /* [n_tile] its share of the regularisers */
    double *tile_scale;   /* [n_tile] factor that the update still applies to the gradient */
    bool needs_norms, penalized;
    int first_loss, n_loss; /* of a function: its losses among all of the step; else 0 */
    /* Asked at the commit point whether this step is applied; NULL: always. */
    bool (*when)(void *context, const keel_applying *now);
    void *when_context;
    bool rests; /* this step is not applied */
} keel_mover;

typedef struct keel_trainer {
    keel_model *model;
    keel_strategy *strategy;
    keel_store *store;
    keel_arenas *arenas;
    keel_scored train, test;       /* the current programs */
    keel_programs trained, tested; /* programs for other row shapes */
    keel_program_options options;
    keel_device_group *sums; /* of the devices, which add up gradients; NULL: the host does ... */
    char no_sums[200];       /* ... since ...; empty: it needs no reason */
    bool *trains;            /* [n_weight] the weight is trainable */
    bool *given_bad;         /* [n_weight] not finite before the first step: see finite.h */
    uint64_t test_seed;      /* of what is drawn without training */
    bool asks;               /* a mover is asked whether it moves */
    bool constrained;        /* one of those is changed again once all have moved */
    bool unfused;
    bool shows;             /* outputs can be read after a step, as in the options */
    keel_spectral spectral; /* of the training programs, which all name the same weights */
    keel_orthogonal orthogonal;

    int n_mover; /* 0: it does not train */
    keel_mover *mover;
    bool all_tiled;        /* every tile is computed by its owner */
    bool may_move_at_once; /* tiles of tiled weights may be computed after the commit point */
    bool *copied_at_once;  /* [n_weight]: their owners then make packed copies of them, too */
    keel_loss_scale loss_scale;
    struct keel_resident *resident; /* weights that live on devices; NULL: none do */
    struct keel_sharded *sharded;   /* processes keep parts of the optimizer's state; NULL: all */
    uint64_t set;     /* of all that callbacks have set, if there are other processes */
    double penalty;   /* regularisers' part of the loss in test steps */
    bool takes, took; /* see the options; it has them, and the model is not live */

    /* Of devices: the batch that comes after the current step, and that which was to come after the
     * step before it. 0: not known. */
    keel_batch next, expected;
    uint64_t next_number, expected_number, batches;

    /* of the current step */
    const keel_batch *batch;
    const keel_bound *bound;
    keel_vote *vote;     /* [n_worker] */
    bool moved_there;    /* devices have moved their weights */
    bool no_op;          /* the step's weights sum to 0 */
    keel_stops stops;    /* whether this process wants a further step: see together.h */
    keel_failure common; /* of a step that processes share: what one of them failed with */
    int64_t bad_row;     /* of such a step, over all processes: see keel_program_bad_row */
} keel_trainer;

typedef struct keel_trainer_options {
    const char *without_kernels;
    bool reference_kernels;
    bool no_graphs;
    bool unfused; /* do not fuse ops */
    keel_float32 float32;
    bool dry;     /* do not allocate activations and gradients: for the plan */
    bool takes;   /* the model's weights, which it has back when it is not live any more */
    bool shows;   /* outputs can be read after steps that are scored, too */
    int programs; /* limit for training and inference each; 0: the default */
} keel_trainer_options;

/* The steps that a program is compiled for: at most `rows` rows, paired in this way. */
typedef struct keel_trainer_work {
    const keel_pairing *pairing; /* borrowed during keel_trainer_create; NULL: no such program */
    int64_t rows;
    const keel_data_field *batch; /* if pairing->open: the fields of the first batch */
} keel_trainer_work;

/* Compile for training, inference or both, by the given work. The calling thread must have entered
 * the team. */
keel_status keel_trainer_create(keel_trainer **out, keel_model *m, keel_strategy *s,
                                const keel_trainer_work *train, const keel_trainer_work *test,
                                const keel_trainer_options *options);
void keel_trainer_destroy(keel_trainer *t);

/* The parts of keel_trainer_create, for trainers of other graphs than a model's (function.c). The
 * store of all weights of some models, one model after another, laid out for the first graph;
 * t->trains is given, or made. */
keel_status keel_trainer_lay_out(keel_trainer *t, const keel_graph *g, keel_model *const *models,
                                 int n_model);
/* Copy the model's weights to the store. */
void keel_trainer_load(keel_trainer *t);
/* An optimizer for the weights with moves [n_weight], as before its first step; on failure
 * keel_trainer_destroy frees it. */
keel_status keel_trainer_take(keel_trainer *t, keel_mover *x, const keel_model_optimizer *o,
                              const bool *moves);
/* Bytes of the optimizers' state as steps use it, */
int64_t keel_trainer_moment_bytes(const keel_trainer *t);
int64_t keel_trainer_untouched(const keel_trainer *t); /* of them, before the first step */
/* and of what the model has of it besides, at the latest when it is saved. Of a sharded state only
 * the first process has all. */
int64_t keel_trainer_state_bytes(const keel_trainer *t);
/* Collect facts about the tiles of the current training program, for step_worker.c. */
void keel_trainer_look(keel_trainer *t);

/* Before a step: make the program for the batch's shapes the current one, t->train or t->test, and
 * compile it if necessary. After a failure the current program stays. It costs nothing if all rows
 * have one shape. */
keel_status keel_trainer_meet(keel_trainer *t, bool training, const keel_batch *b);

/* Whether the program can run steps of so many rows: stateful layers need all of theirs. */
keel_status keel_scored_takes(const keel_scored *s, int64_t rows);

/* Prepare steps with these row counts. */
keel_status keel_trainer_prepare(keel_scored *s, const int64_t *rows, int n);

#endif
