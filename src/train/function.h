/* A function: its traces, compiled for the shapes of their inputs, over one trainer. */
#ifndef KEEL_TRAIN_FUNCTION_H
#define KEEL_TRAIN_FUNCTION_H
#include "train/step.h"
#include "train/trace.h"

/* A trace that is compiled. While it is in use its program is the trainer's. */
typedef struct keel_planned {
    keel_scored scored;
    keel_trace trace;       /* what the program still points to; without its graph */
    keel_data_field *input; /* [n_input] of these shapes */
    int64_t rows, used;     /* the largest step; the last use, by a counter */
    uint64_t contents;      /* of its graph */
} keel_planned;

struct keel_function {
    keel_function_options o; /* name and input are copies */
    char *name;
    keel_data_field *input;
    keel_called_models models;
    keel_model **model; /* [models.n] the same, as lists of them are passed */
    keel_trainer *trainer;
    keel_trace first; /* that found the models: the optimizers are made from it */
    bool backward;    /* an optimizer is applied */
    int n_planned, at;
    keel_planned *planned; /* [o.programs] */
    int64_t made, clock;
    uint64_t first_row; /* rows of all successful runs: keys random numbers */
    int64_t step;
    void *fact[KEEL_FACT_COUNT]; /* [fact_rows] */
    int64_t fact_rows;
    keel_score score; /* of the last run */
    bool ran;         /* it was successful */
    bool anew;        /* weights or states were given since: processes compare them */
    int64_t arenas;   /* bytes of them for which there is memory, as was checked */
};

/* function_plan.c: makes the program for these inputs the trainer's current one, and compiles it if
 * necessary. After a failure the current one stays. */
keel_status keel_function_plan(keel_function *f, keel_strategy *s, const keel_tensor *inputs,
                               int64_t rows);
void keel_function_forget(keel_function *f); /* frees all of that */
/* function.c: from now on the weights of the models are in the store, and copies of it are old.
 * all: also those that have not changed since they were taken. Returns whether there were any. */
bool keel_function_take_weights(keel_function *f, bool all);
/* Reads the weights of models that somebody else has changed. KEEL_EARG: a model is in use. */
keel_status keel_function_load_weights(keel_function *f);

/* function_contents.c: a number that says what a run is about: the step, its inputs, the learning
 * rates and iterations, and if they are new the weights and the states that were set. All processes
 * must have the same. */
uint64_t keel_function_contents(const keel_function *f, const keel_tensor *inputs, int n);
uint64_t keel_function_contents_of(const keel_graph *g);

/* The program in use. */
static inline keel_scored *keel_function_scored(const keel_function *f)
{
    return f->backward ? &f->trainer->train : &f->trainer->test;
}

#endif
