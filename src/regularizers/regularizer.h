/* Regularisers add l1 * sum|w| + l2 * sum(w^2) to the loss, once for any number of lanes. */
#ifndef KEEL_REGULARIZERS_REGULARIZER_H
#define KEEL_REGULARIZERS_REGULARIZER_H
#include "base/field.h"

typedef struct keel_regularizer {
    keel_type type;
    void (*factors)(const void *args, double *l1, double *l2);
} keel_regularizer;

extern const keel_regularizer *const keel_regularizers[]; /* generated; ends with NULL */
const keel_type *keel_regularizer_find(const char *name);

#endif
