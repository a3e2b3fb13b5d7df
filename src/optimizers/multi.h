/* Keras's MultiOptimizer: several optimizers, each for the weights that its pattern names, and one
 * for all others. */
#ifndef KEEL_OPTIMIZERS_MULTI_H
#define KEEL_OPTIMIZERS_MULTI_H
#include "base/field.h"

/* The wrapper, and the map that it holds. The optimizers inside are read where optimizers are. */
extern const keel_type keel_multi_type, keel_optimizer_map_type;

/* Find only the types above. */
const keel_type *keel_multi_find(const char *name);
const keel_type *keel_optimizer_map_find(const char *name);

/* *out: the pattern that is the path, or else the one that is an expression for all of it; n:
 * there is none. KEEL_EARG: several are. */
keel_status keel_multi_choose(const char *const *patterns, int n, const char *path, int *out);

#endif
