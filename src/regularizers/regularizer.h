/* Regularisers add a term to the loss that depends on a weight alone, once for any number of lanes.
 */
#ifndef KEEL_REGULARIZERS_REGULARIZER_H
#define KEEL_REGULARIZERS_REGULARIZER_H
#include "base/field.h"
#include "tensor/penalty.h"
#include "tensor/shape.h"

typedef struct keel_regularizer {
    keel_type type;
    void (*penalty)(const void *args, keel_penalty *out); /* *out is all zeros before */
} keel_regularizer;

extern const keel_regularizer *const keel_regularizers[]; /* generated; ends with NULL */
const keel_type *keel_regularizer_find(const char *name);

/* What `o` (NULL or without a type: nothing) adds to the loss for a weight of that shape.
 * KEEL_EARG, KEEL_EUNSUP: it has no such term. */
keel_status keel_regularizer_read(const keel_object *o, const keel_shape *shape, keel_penalty *out);

#endif
