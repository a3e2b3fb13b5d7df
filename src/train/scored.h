/* A program with the nodes whose sums are its losses and metrics. */
#ifndef KEEL_TRAIN_SCORED_H
#define KEEL_TRAIN_SCORED_H
#include "graph/program.h"
#include "keel/train.h"
#include "train/pairing.h"
#include "train/score.h"

typedef struct keel_scored_loss {
    int output, node;
    keel_loss_args args;
    void *own;        /* a copy of the loss's args with from_logits; NULL */
    int64_t elements; /* of a row */
    const char *name; /* the model's: "left_loss", in logs where there are several */
} keel_scored_loss;

typedef struct keel_scored_metric {
    int output, node;
    keel_metric_args args;
    keel_object resolved; /* "accuracy" made concrete; owned */
    const char
        *name; /* the model's: "accuracy", or "left_accuracy" where there are several outputs */
} keel_scored_metric;

typedef struct keel_scored {
    keel_program *program;
    int n_loss;
    keel_scored_loss loss[KEEL_OUTPUTS_MAX];
    int n_activity; /* nodes that are terms of the loss which layers add (layers/activity.c) */
    int *activity;
    bool apart; /* several terms: each gradient is made with its own divisor, none is left */
    int n_metric;
    keel_scored_metric metric[KEEL_LOGS_MAX];
    int *field; /* [inputs of the graph] the dataset's field that feeds it; KEEL_ROW_WEIGHTS */
    double seed[KEEL_OUTPUTS_MAX]; /* of the running step; see keel_step_facts.loss_seed */
} keel_scored;

enum { KEEL_ROW_WEIGHTS = -1 }; /* what the feed adds behind the dataset's fields, if anything */

/* The model's graph with its losses and metrics, in the order of `pairing` (and without them where
 * it is not scored). fuse: let ops run as one. The caller compiles *graph into s->program; on
 * failure keel_scored_free. outputs [m->n_output]. */
keel_status keel_scored_emit(keel_scored *s, keel_model *m, const keel_pairing *pairing,
                             bool training, bool fuse, keel_graph **graph, keel_value *outputs);
void keel_scored_free(keel_scored *s);

/* For a step of `rows` rows of a batch: the seeds, where the losses have them. */
void keel_scored_begin(keel_scored *s, int64_t rows);

/* What a finished run says. */
typedef struct keel_score {
    double loss;                   /* of the step, without regularisers */
    double each[KEEL_OUTPUTS_MAX]; /* [n_loss] not weighted, as Keras logs them */
    double divisor;                /* of the gradients: what is still to divide by */
    bool finite;
} keel_score;
void keel_scored_read(const keel_scored *s, const keel_bound *b, keel_score *out);

/* "loss", the losses where there are several, the metrics. */
void keel_scored_names(const keel_scored *s, keel_logs *logs);

#endif
