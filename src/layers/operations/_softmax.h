/* Softmax and its logarithm: the same argument. */
#ifndef KEEL_LAYERS_OPERATIONS_SOFTMAX_H
#define KEEL_LAYERS_OPERATIONS_SOFTMAX_H
#include "layers/operations/_values.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "-1", -7, 7, "along which dims, the batch is 0"),
    { 0 },
};

static keel_status emit_softmax(keel_emit *e, bool log)
{
    return keel_emit_softmax(e, &((const args_t *)e->args)->axis, log, e->in[0], e->out);
}

#endif
