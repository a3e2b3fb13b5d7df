/* Dims of 1 repeated, up to a shape; its value is what broadcast_to takes. */
#include "layers/operations/_cast.h"

typedef struct args_t {
    json_t *shape;
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_LIST(args_t, shape, NULL, "with the batch (null or any number) first"),
    KEEL_STRING(args_t, dtype, "null", "of the result; null: float32"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_broadcast_to;
    keel_value x;
    KEEL_TRY(keel_emit_cast(e, ((const args_t *)e->args)->dtype, false, e->in[0], &x));
    return keel_emit_instead(e, &keel_layer_ops_broadcast_to, x);
}

KEEL_ARGS_OPERATION(ops_full, "Full", "numpy", 1, "Dims of 1 repeated, up to a shape.")
