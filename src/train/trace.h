/* A trace: a step written in C, as a graph with losses, gradients and optimizers. See
 * keel/function.h. trace.c has the calls that a step makes; traced.c turns what they left into a
 * graph that a trainer compiles. */
#ifndef KEEL_TRAIN_TRACE_H
#define KEEL_TRAIN_TRACE_H
#include "keel/function.h"
#include "model/parts.h"
#include "train/scored.h"

/* The inputs of the graph after those of the function, filled anew for each step. */
enum { KEEL_FACT_ONE = KEEL_FACT_DEVICE_ROWS + 1, KEEL_FACT_COUNT };

/* A model that the step calls. All traces of a function call the same. */
typedef struct keel_called {
    keel_model *model;
    keel_variable first; /* the number of its first weight among those of all models */
    int stream;          /* of random numbers: its first */
    uint64_t seen;       /* keel_model.changes when its weights were last read */
} keel_called;

typedef struct keel_called_models {
    int n, n_weight, n_stream;
    keel_called *model;
    bool sealed; /* the weights are laid out: there can be no others */
} keel_called_models;

/* A call of a model with training, which may be made again. */
typedef struct keel_traced_call {
    const keel_model *model;
    keel_traced *in; /* [model->n_input] */
    keel_traced out; /* the first */
    keel_model_draws draws;
} keel_traced_call;

typedef struct keel_traced_value {
    keel_value value, mask; /* mask -1: none */
    keel_traced first; /* of a call that is made again: the value of the first; behind StopGradient
                          that before it; else itself */
} keel_traced_value;

typedef struct keel_traced_loss {
    keel_object loss;         /* type NULL: the mean of the prediction, or ... */
    struct keel_whole *whole; /* ... a loss of all rows; owned. See whole_loss.h */
    keel_traced target, prediction, weight;
    int scored; /* its place in keel_scored.loss */
} keel_traced_loss;

typedef struct keel_traced_gradients {
    int n_term, n_weight;
    keel_term *term;
    bool *watched; /* [n_weight] of the models that were called so far */
    int apply;     /* the optimizer that takes them; -1: none */
} keel_traced_gradients;

typedef struct keel_traced_apply {
    int gradients;
    keel_model_compiled chosen; /* its only optimizer */
    keel_apply options;
} keel_traced_apply;

typedef struct keel_traced_return {
    char *name;
    int value, scalar; /* one of them -1 */
    int output;        /* of the program: its number among the outputs */
} keel_traced_return;

struct keel_trace {
    const keel_function_options *options;
    const keel_data_field *input; /* [options->n_input] their shapes are closed */
    keel_called_models *models;
    int64_t rows;      /* of the largest step */
    bool backward;     /* gradients will flow */
    bool within;       /* it is the step of a loss of all rows, whose inputs get gradients */
    keel_scalar gives; /* then: the scalar that is this loss */
    keel_graph *g;
    keel_scored *s;
    keel_model *ops; /* the layers that the step calls itself */
    keel_model_chances chances;
    int next_stream;
    keel_failure failure; /* the first, which all later calls repeat */
    keel_traced field[KEEL_FIELDS_MAX + KEEL_FACT_COUNT]; /* -1: not asked for yet */
    int n_value, n_call, n_loss, n_gradients, n_apply, n_return;
    int n_again; /* calls that were made again */
    keel_traced_value *value;
    keel_traced_call *call;
    keel_traced_loss *loss;
    keel_traced_gradients *gradients;
    keel_traced_apply *apply;
    keel_traced_return *ret;
    bool *trains; /* [models->n_weight] some optimizer moves it; made by keel_trace_finish */
};

/* Run the step. On failure, and at the end, the caller frees t. */
keel_status keel_trace_run(keel_trace *t);
void keel_trace_free(keel_trace *t);

/* traced.c: fuse ops, add losses, and decide which calls of layers pass which gradients. *outputs
 * [*n_output]: the values that are returned; the caller frees them. */
keel_status keel_trace_finish(keel_trace *t, keel_value **outputs, int *n_output);

/* The fact's input of the graph. */
keel_status keel_trace_field(keel_trace *t, int field, keel_traced *out);

#endif
