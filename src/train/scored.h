/* A program together with its loss and metric nodes. */
#ifndef KEEL_TRAIN_SCORED_H
#define KEEL_TRAIN_SCORED_H
#include "graph/program.h"
#include "keel/train.h"
#include "train/pairing.h"
#include "train/score.h"

enum { KEEL_SCORES_MAX = 192 }; /* losses and metrics of a model, with "loss" */

typedef struct keel_scored_loss {
    int output, node;
    keel_loss_args args;
    void *own;        /* a copy of the loss's args with from_logits, or NULL */
    int64_t elements; /* loss elements of a row */
    const char *name; /* of the model: "left_loss"; in logs if there are several losses */
} keel_scored_loss;

typedef struct keel_scored_metric {
    int output, node;
    keel_metric_args args;
    int64_t first, sums;     /* its sums in keel_tally.metric: [first, first + sums) */
    keel_object resolved;    /* the metric that "accuracy" stands for; owned */
    int values;              /* how many numbers it gives */
    const char **value_name; /* [values] "f1_score[0]", ...; owned; NULL: one, by `name` */
    const char *name;        /* of the model: "accuracy", or with several outputs "left_accuracy" */
} keel_scored_metric;

typedef struct keel_scored {
    keel_program *program;
    int n_loss;
    keel_scored_loss loss[KEEL_OUTPUTS_MAX];
    int n_activity; /* nodes of loss terms that layers add (layers/activity.c) */
    int *activity;
    bool apart; /* several terms, or a loss scale: each gradient has its divisor already, and only
                   the scale is divided by later */
    int n_metric;
    keel_scored_metric metric[KEEL_SCORES_MAX];
    keel_value mask[KEEL_OUTPUTS_MAX]; /* of an output; -1: none, or the graph has no losses */
    int mask_at[KEEL_OUTPUTS_MAX];     /* its place among what can be read after a step; -1: none */
    int *field; /* [inputs of the graph] the dataset's field of each, or one of those below */
    int *state; /* [carried of the graph] its place in the model's row_states */
    double seed[1 + KEEL_OUTPUTS_MAX]; /* of the current step; see keel_step_facts.loss_seed */
} keel_scored;

_Static_assert(1 + (int)KEEL_OUTPUTS_MAX <= (int)KEEL_LOSS_SEEDS_MAX, "a step has these seeds");

enum {
    KEEL_ROW_WEIGHTS = -1, /* the weights that the feed appends to the fields, if any */
    KEEL_ROW_STATE = -2,   /* the state of a stateful layer, which the model has */
};

/* Emit the model's graph for steps of at most so many rows, with losses and metrics if `pairing` is
 * scored. fuse: fuse ops. The caller compiles *graph into s->program; after a failure it calls
 * keel_scored_free. outputs [m->n_output]. */
keel_status keel_scored_emit(keel_scored *s, keel_model *m, const keel_pairing *pairing,
                             int64_t rows, bool training, bool fuse, keel_graph **graph,
                             keel_value *outputs);
void keel_scored_free(keel_scored *s);

/* The parts of keel_scored_emit, for other graphs than a model's: add the op of a loss of s to `g`,
 * on in [n_in] as in score.h, of which a prediction may be changed to its logits; and find the loss
 * terms that layers have added. s->n_loss and s->apart are known. */
keel_status keel_scored_emit_loss(const keel_scored *s, keel_scored_loss *l, keel_graph *g,
                                  keel_value *in, int n_in);
keel_status keel_scored_find_activities(keel_scored *s, const keel_graph *g);

/* Compute the seeds for a step of `rows` rows, if the losses have them. loss_scale: 1 if there is
 * none. */
void keel_scored_begin(keel_scored *s, int64_t rows, double loss_scale);

/* Loss and divisor of a finished step. */
typedef struct keel_score {
    double loss;                      /* of the step, without regularisers */
    double each[KEEL_OUTPUTS_MAX];    /* [n_loss] without loss weights, as in Keras's logs */
    double weighed[KEEL_OUTPUTS_MAX]; /* [n_loss] the sum of the weights of its elements */
    double divisor;                   /* that gradients must still be divided by */
    double weights;                   /* sum over all loss elements */
    bool finite;
} keel_score;
void keel_scored_read(const keel_scored *s, const keel_bound *b, keel_score *out);

/* Names in logs: "loss", each loss if there are several, the metrics. */
void keel_scored_names(const keel_scored *s, keel_logs *logs);

#endif
