/* The product over axes. */
#include "layers/operations/_cast.h"
#include "layers/operations/_product.h"

typedef struct args_t {
    keel_ints axis;
    bool keepdims;
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    KEEL_STRING(args_t, dtype, "null", "float32 or null"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    KEEL_TRY(
        keel_float32_only(a->dtype, "Keras on TensorFlow takes no heed of it, on JAX it does"));
    return emit_product(e, &a->axis, a->keepdims, e->in[0]);
}

KEEL_ARGS_OPERATION(ops_prod, "Prod", "numpy", 1, "The product over axes.",
                    .whole = KEEL_WHOLE_KEPT)
