/* Sums of products by Einstein's notation, and what becomes such a sum. */
#ifndef KEEL_LAYERS_OPERATIONS_EINSUM_H
#define KEEL_LAYERS_OPERATIONS_EINSUM_H
#include "layers/operations/_operation.h"

typedef struct keel_einsum_operand {
    keel_value value;
    bool array; /* the same for all rows: its letters do not begin with the batch */
} keel_einsum_operand;

/* Emits the whole operation for "bqhd,bkhd->bhqk" and one or two operands. The first letter of the
 * result, and of the operands that are no arrays, is the batch. */
keel_status keel_emit_einsum(keel_emit *e, const char *subscripts, const keel_einsum_operand *x,
                             int n);

/* Emits the whole operation that sums over `over` axes of the first argument of the call, a value,
 * and of the second, an array; axes as in Keras. What is left of both follows one another. */
keel_status keel_emit_contraction(keel_emit *e, int over, const int64_t *x_axes,
                                  const int64_t *axes);

#endif
