/* Spectral normalization: before the forward pass of a step that trains, each weight that the graph
 * names is divided by its largest singular value, in place, as Keras assigns it. A step that then
 * fails, or has no weight, puts back what was there. */
#ifndef KEEL_TRAIN_SPECTRAL_H
#define KEEL_TRAIN_SPECTRAL_H
#include "graph/store.h"

typedef struct keel_spectral_weight {
    keel_graph_spectral of;
    int64_t rows, columns; /* the weight as a matrix */
    double *was, *u_was;   /* [rows, columns], [columns]: before the step */
    double *u, *v;         /* [columns], [rows]: of the power iterations */
} keel_spectral_weight;

typedef struct keel_spectral {
    keel_store *store;
    int n;
    keel_spectral_weight *weight;
    int64_t bytes;
} keel_spectral;

keel_status keel_spectral_create(keel_spectral *out, const keel_graph *g, keel_store *store);
void keel_spectral_free(keel_spectral *s);
/* A worker's share of the weights. Packed copies are then old. No memory, cannot fail. */
void keel_spectral_apply(const keel_spectral *s, int worker, int n_worker);
/* All weights as before keel_spectral_apply, with their packed copies. */
void keel_spectral_undo(const keel_spectral *s);

#endif
