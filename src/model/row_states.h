/* The states of stateful layers: one for each row of the batch, which goes on from step to step.
 * They belong to a model, begin as zeros, and are not saved, as in Keras. */
#ifndef KEEL_MODEL_ROW_STATES_H
#define KEEL_MODEL_ROW_STATES_H
#include "graph/graph.h"
#include "keel/model.h"

typedef struct keel_row_state {
    char *name; /* keel_graph_carried.name */
    keel_shape shape;
    int64_t rows, bytes; /* bytes: of all rows */
    void *data;          /* [rows, shape] in the model's dtype, 64-byte aligned */
} keel_row_state;

typedef struct keel_row_states {
    int n;
    keel_row_state *state;
} keel_row_states;

/* The state of that value of the graph; a new one is made of zeros. KEEL_EUNSUP: it is there with
 * rows of another shape. */
keel_status keel_row_states_find(keel_row_states *s, const keel_graph *g,
                                 const keel_graph_carried *c, int *index);
void keel_row_states_free(keel_row_states *s);

/* The batch size that an Input of the model fixes; -1: none does. */
int64_t keel_model_batch(const keel_model *m);
/* Fixes another one there, unless none is. */
void keel_model_set_batch(keel_model *m, int64_t rows);

#endif
