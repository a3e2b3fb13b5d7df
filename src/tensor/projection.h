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

/* float32, or float64; whole, dense. Cannot fail; no memory. */
void keel_project(const keel_projection *p, const keel_shape *shape, keel_dtype real, void *data);

#endif
