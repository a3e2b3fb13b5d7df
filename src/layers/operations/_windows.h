/* What keras.ops.average_pool and max_pool share. */
#ifndef KEEL_LAYERS_OPERATIONS_WINDOWS_H
#define KEEL_LAYERS_OPERATIONS_WINDOWS_H
#include "layers/operations/_operation.h"
#include "layers/pooling/_pool.h"

static const keel_field fields[] = { KEEL_POOL_FIELDS(-1, NULL), { 0 } };

/* A number stands for all dims. */
static void spread(keel_ints *a, int dims)
{
    for (; a->count == 1 && dims == 2; a->count++) a->at[1] = a->at[0];
}

static keel_status emit_windows(keel_emit *e, const keel_op *op)
{
    const int dims = keel_emit_in(e, 0)->shape.rank - 1;
    keel_pool a = *(const keel_pool *)e->args;
    keel_emit inner = *e;
    if (dims < 1 || dims > 2)
        return keel_fail(KEEL_EUNSUP, "one or two dims of places are supported, not %d", dims);
    spread(&a.pool_size, dims);
    spread(&a.strides, dims);
    inner.args = &a;
    return keel_emit_pool(&inner, dims, op);
}

#define KEEL_WINDOWS_OPERATION(stem, class_, op_, help_, ...)                                      \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return emit_windows(e, &keel_op_##op_);                                                    \
    }                                                                                              \
    KEEL_ONE_INPUT_OPERATION(stem, class_, "nn", keel_pool, help_, __VA_ARGS__)

#endif
