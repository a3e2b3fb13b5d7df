/* OrthogonalRegularizer: its loss and its gradient for a weight, of which every vector needs all
 * others. So they are made from the weights alone, in two passes before the gradients of a step
 * are reduced; workers meet between the passes, and share the vectors of each weight in blocks. */
#ifndef KEEL_TRAIN_ORTHOGONAL_H
#define KEEL_TRAIN_ORTHOGONAL_H
#include "graph/store.h"

typedef struct keel_orthogonal_weight {
    keel_variable variable;
    int64_t n, length;            /* vectors, and elements of each */
    int64_t vector_step, element; /* in the weight, from a vector to the next, and inside one */
    double factor;                /* of |cosine| of a pair */
    char *unit, *across;          /* [n, length] vectors of length 1, and [length, n] */
    char *gradient;               /* as the weight */
    double *inverse;              /* [n] 1 / length of a vector */
    double *sum;                  /* [n] of |cosine| with all others */
} keel_orthogonal_weight;

typedef struct keel_orthogonal {
    const keel_store *store;
    int n;
    keel_orthogonal_weight *weight;
    char *memory, *room; /* of all weights; for each worker */
    int64_t room_bytes;  /* of one worker */
    int64_t *of;         /* [n_weight] an index into `weight`, or -1 */
    int64_t bytes;
} keel_orthogonal;

/* For the weights with trains [n_weight] that have such a regularizer. */
keel_status keel_orthogonal_create(keel_orthogonal *out, const keel_store *store,
                                   const bool *trains, int n_worker);
void keel_orthogonal_free(keel_orthogonal *o);

/* A worker's share of the first and of the second pass. No memory, cannot fail. */
void keel_orthogonal_normalize(const keel_orthogonal *o, int worker, int n_worker);
void keel_orthogonal_compare(const keel_orthogonal *o, int worker, int n_worker);

/* After both passes: the gradient of a weight, from element `first` on (NULL: it has no such
 * regularizer), and the term of the loss of all weights. */
const void *keel_orthogonal_gradient(const keel_orthogonal *o, keel_variable v, int64_t first);
double keel_orthogonal_loss(const keel_orthogonal *o);

#endif
