/* A trainer: a model compiled for a strategy. It holds the weights as flat ranges (the store) and
 * the programs that run on them; the model's own copies are read at the start and written at the
 * end. */
#ifndef KEEL_TRAIN_TRAINER_H
#define KEEL_TRAIN_TRAINER_H
#include "data/feed.h"
#include "graph/program.h"
#include "model/model.h"
#include "train/score.h"
#include "train/strategy.h"

/* A program with the nodes whose sums are the loss and the metrics. */
typedef struct keel_scored {
    keel_program *program;
    int loss_node; /* -1: none */
    keel_loss_args loss;
    void *logits_args; /* owned copy of the loss's args with from_logits; NULL */
    int n_metric;
    int metric_node[KEEL_LOGS_MAX];
    keel_metric_args metric[KEEL_LOGS_MAX];
    keel_object resolved[KEEL_LOGS_MAX]; /* "accuracy" made concrete; owned */
} keel_scored;

/* What one worker tells the others at the commit point. */
typedef struct keel_vote {
    keel_variable bad;  /* a weight whose gradient is not finite; -1: none */
    double regulariser; /* its tiles' share of the regularisers */
    bool tame;          /* what late gradients are made of, as far as it has it: see train/step.c */
    int64_t ended;      /* when it was through with the step, where that is timed */
    char pad[96];       /* votes do not share cache lines */
} keel_vote;

typedef struct keel_trainer {
    keel_model *model;
    keel_strategy *strategy;
    keel_store *store;
    keel_scored train, test;
    keel_program_options options;
    bool unfused;

    const keel_optimizer *optimizer;
    const void *optimizer_args;
    int n_moment;
    int *first_tile;    /* [n_worker + 1] tiles of each owner */
    int *late_tile;     /* [n_worker] the owner's largest late tile; -1: none */
    bool all_late;      /* every tile is made by its owner */
    bool may_move_late; /* late tiles may be made after the commit point, if all is tame */
    double *tile_norm;  /* [n_tile] sum of squares of the reduced gradient */
    double *tile_scale; /* [n_tile] what the update still has to multiply it by */
    bool needs_norms;
    double penalty; /* of the regularisers, while the weights are only looked at */
    int64_t iterations;
    double learning_rate;

    /* of the running step */
    const keel_batch *batch;
    const keel_bound *bound;
    keel_vote *vote; /* [n_worker] */
    bool no_op;      /* the step's weights sum to 0 */
} keel_trainer;

typedef struct keel_trainer_options {
    const char *without_kernels;
    bool reference_kernels;
    bool unfused; /* every op by itself */
    keel_float32 float32;
    bool dry; /* no activations, no gradients: for the plan */
} keel_trainer_options;

/* Compile for training (if `train_rows` > 0) and for inference (if `test_rows` > 0), for steps of
 * at most so many rows. y_shape: of the targets; NULL: predict only. The calling thread has entered
 * the team. */
keel_status keel_trainer_create(keel_trainer **out, keel_model *m, keel_strategy *s,
                                const keel_shape *y_shape, int64_t train_rows, int64_t test_rows,
                                const keel_trainer_options *options);
void keel_trainer_destroy(keel_trainer *t);

/* Weights and optimizer state back into the model. */
void keel_trainer_store(keel_trainer *t);

/* Prepare steps of these many rows. */
keel_status keel_trainer_prepare(keel_scored *s, const int64_t *rows, int n);

/* "loss" and the metrics' names, and their values from accumulated sums. */
void keel_trainer_names(const keel_trainer *t, const keel_scored *s, keel_logs *logs);

#endif
