/* How a constraint changes a weight after each step. */
#ifndef KEEL_TENSOR_PROJECTION_H
#define KEEL_TENSOR_PROJECTION_H
#include "keel/tensor.h"
#include <stdbool.h>

/* Numbers below 0 become 0; or the length n of each vector becomes n + rate (n' - n), with n' the
 * nearest to n from `least` to `most` (`least` if it is above `most`). A vector runs along the dims
 * of `over` (bit d: dim d). */
typedef struct keel_projection {
    bool non_negative, lengths; /* neither: nothing is done */
    double least, most, rate;
    unsigned over;
} keel_projection;

/* The squares of a vector are added up in double, in one order, which devices have, too: lane l
 * adds places l, l + LANES, ...; then the upper half of the lanes goes to the lower one, until one
 * is left. Lanes without a place have 0, which changes no sum. */
enum { KEEL_PROJECT_LANES = 256 };

static inline bool keel_projects(const keel_projection *p)
{
    return p->non_negative || p->lengths;
}

/* Keras's backend.epsilon(): no vector is divided by less. */
#define KEEL_LEAST_LENGTH 1e-7

/* float32, or float64; whole, dense. Cannot fail; no memory. */
void keel_project(const keel_projection *p, const keel_shape *shape, keel_dtype real, void *data);

#endif
