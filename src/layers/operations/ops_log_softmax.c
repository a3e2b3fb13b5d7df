/* The logarithm of softmax along an axis, or over several. */
#include "layers/operations/_values.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "-1", -7, 7, "along which dims, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_softmax(e, &((const args_t *)e->args)->axis, true, e->in[0], e->out);
}

KEEL_ARGS_OPERATION(ops_log_softmax, "LogSoftmax", "nn", 1,
                    "The logarithm of softmax along an axis, or over several.")
