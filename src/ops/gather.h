/* What the reference of ops/gather.c and its kernels share. */
#ifndef KEEL_OPS_GATHER_H
#define KEEL_OPS_GATHER_H
#include "ops/op.h"

/* The row of a table of `rows` that place i of a call reads. false: there is none, and the step has
 * failed. */
bool keel_gather_row(const keel_call *c, int64_t i, int64_t rows, int64_t *row);

/* The gradient of a tile of the table: `add` adds the d numbers of dy, of the type in which the
 * node's output is held, to sum, which are of `element` bytes each. */
void keel_gather_tile(const keel_tile_call *c, size_t element,
                      void (*add)(void *sum, const void *dy, int64_t d));

#endif
