/* Losses of all rows of a step together, which a step of the caller's computes: see
 * keel_trace_whole_loss. The engine gathers the rows, as for any loss that gathers (losses/loss.h).
 * The caller's step is a program of its own, for one row, which is all rows of the step. It runs
 * once in each step, on the cores of the host: workers that come to the loss share its calls, which
 * are cut by their shapes alone (graph/parts.h). So what it computes does not depend on the
 * devices. whole_loss.c has what a step does with it, whole_loss_plan.c its programs. */
#ifndef KEEL_TRAIN_WHOLE_LOSS_H
#define KEEL_TRAIN_WHOLE_LOSS_H
#include "base/crew.h"
#include "data/feed.h"
#include "device/team.h"
#include "graph/parts.h"
#include "keel/whole_loss.h"
#include "train/trace.h"

typedef struct keel_whole keel_whole;

/* An input of the caller's step. */
typedef struct keel_whole_input {
    keel_spec spec; /* of a row of the value, real ones in the type of the function */
    int64_t count;  /* numbers of a row */
    int64_t first;  /* where they begin in a row's record; -1: it is not real, ... */
    int field;      /* ... and lies in this input of the function */
} keel_whole_input;

/* The caller's step as a program for so many rows. */
typedef struct keel_whole_made {
    int64_t rows, used;
    keel_called_models models;
    keel_data_field *input; /* [n_input] */
    keel_trace trace;       /* what the program still points to; without its graph */
    keel_scored scored;
    keel_store *store; /* of no weights */
    const keel_bound *bound;
    keel_parts *parts;
    int n_phase, *turn; /* what the workers share in a step: keel_crew_begin */
    bool *rounds;       /* [n_input] its whole numbers become real ones, which are not all exact */
    void **given;       /* [n_input] rows of real inputs; NULL entry: they lie in the batch */
    const void **grad;  /* [n_input] after a run; NULL entry: nothing flows there */
    uint64_t contents;  /* of its graph */
    double loss;        /* of the last run */
} keel_whole_made;

/* The arguments of keel_loss_of_whole. */
typedef struct keel_whole_args {
    int reduction;
    keel_whole *whole;
} keel_whole_args;

struct keel_whole {
    keel_whole_args args;
    keel_function_options o; /* of the caller's step; names are copies */
    keel_data_field *field;  /* [o.n_input] without the number of rows */
    keel_whole_input *input; /* [o.n_input] */
    keel_traced *value;      /* [o.n_input] of the outer step */
    int64_t length;          /* numbers of a record */
    keel_lanes lanes;        /* one core */
    int workers;             /* of the step in this process that take part */
    int node;                /* of the outer program */
    keel_crew *crew;         /* of them; made when they are known */
    union {
        float f32;
        double f64;
    } one; /* the input of ones, of the function's type */
    int n_made, now;
    int64_t clock;
    keel_whole_made *made; /* [KEEL_WHOLE_MADE] */
};

enum { KEEL_WHOLE_MADE = 8 }; /* numbers of rows for which a program is kept */

extern const keel_loss keel_loss_of_whole;

/* While a step is traced. */
keel_status keel_whole_create(keel_whole **out, keel_trace *t, const keel_whole_loss *loss);
/* When it has been: adds one row of all real values. stops [values of the graph]: no gradient flows
 * to these from here; NULL: to all. */
keel_status keel_whole_row(const keel_whole *w, const keel_trace *t, const bool *stops,
                           keel_value *row);
void keel_whole_destroy(keel_whole *w);

/* whole_loss_plan.c: makes the program for steps of so many rows, if there is none. backward: its
 * gradients are wanted. */
keel_status keel_whole_make(keel_whole *w, int64_t rows, bool backward);
void keel_whole_made_free(keel_whole_made *m, int n_input);

/* Those of a trace: before a step of so many rows of a program is possible; before each step,
 * by the calling thread (KEEL_EDATA: a whole number that the step rounds); the bytes of the host
 * that they take; and a number that says what they compute. */
keel_status keel_wholes_prepare(const keel_trace *t, const keel_scored *s, int64_t rows);
keel_status keel_wholes_begin(const keel_trace *t, const keel_batch *b);
int64_t keel_wholes_bytes(const keel_trace *t);
uint64_t keel_wholes_contents(const keel_trace *t);

#endif
