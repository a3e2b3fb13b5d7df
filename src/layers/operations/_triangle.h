/* Which triangle of matrices the operations with Cholesky's decomposition mean. */
#ifndef KEEL_LAYERS_OPERATIONS_TRIANGLE_H
#define KEEL_LAYERS_OPERATIONS_TRIANGLE_H
#include "layers/operations/_values.h"
#include "ops/band.h"

typedef struct args_t {
    bool upper;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, upper, "false", "the upper triangle; else the lower"),
    { 0 },
};

static inline keel_status emit_turned(keel_emit *e, keel_value x, keel_value *out)
{
    const int rank = keel_value_shape(e, x)->rank;
    if (rank < 2) return keel_fail(KEEL_ESHAPE, "rows must be square matrices");
    return keel_emit_two_last(e, x, rank - 1, rank - 2, out);
}

#endif
