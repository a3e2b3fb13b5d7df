/* Dims of 1 repeated, up to a shape; its value is what broadcast_to takes. */
#include "layers/operations/_values.h"

typedef struct args_t {
    json_t *shape;
} args_t;

static const keel_field fields[] = {
    KEEL_LIST(args_t, shape, NULL, "with the batch (null or any number) first"),
    KEEL_REFUSE("dtype", "null", "of the result"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_broadcast_to;
    return keel_emit_instead(e, &keel_layer_ops_broadcast_to, e->in[0]);
}

KEEL_ARGS_OPERATION(ops_full, "Full", "numpy", 1, "Dims of 1 repeated, up to a shape.")
