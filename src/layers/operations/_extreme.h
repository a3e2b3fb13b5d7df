/* What ops.max and ops.min share: the extreme over axes, and of it and a number. */
#ifndef KEEL_LAYERS_OPERATIONS_EXTREME_H
#define KEEL_LAYERS_OPERATIONS_EXTREME_H
#include "layers/operations/_operation.h"
#include "layers/operations/_values.h"
#include <math.h>

typedef struct keel_extreme {
    keel_reduction over; /* first */
    double initial;      /* NAN: none */
} keel_extreme;

#define KEEL_EXTREME_FIELDS                                                                        \
    KEEL_REDUCTION_FIELDS,                                                                         \
        KEEL_FLOAT(keel_extreme, initial, "null", 0, 0, "a number that counts, too; null: none")

/* than: the op that gives the extreme of two. */
static inline keel_status keel_emit_extreme(keel_emit *e, int to, const keel_op *than)
{
    const keel_extreme *a = e->args;
    keel_reduce_args op = { .to = to, .keepdims = a->over.keepdims };
    KEEL_TRY(keel_reduce_axes(e, &a->over.axis, &op));
    KEEL_TRY(keel_emit_unary(e, &keel_op_reduce, &op));
    return isnan(a->initial) ? KEEL_OK : keel_emit_with(e, than, e->out[0], a->initial, e->out);
}

#endif
