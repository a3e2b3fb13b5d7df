/* Casts numbers to a real type or to bool. */
#include "layers/operations/_operation.h"
#include <string.h>

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, NULL, "float32, bfloat16 or bool"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_compare_args differs = { .is = KEEL_NOT_EQUAL };
    if (!strcmp(a->dtype, "bool")) return keel_emit_unary(e, &keel_op_compare, &differs);
    if (strcmp(a->dtype, "float32"))
        return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported: float32 and bool are",
                         a->dtype);
    e->out[0] = e->in[0];
    return KEEL_OK;
}

const keel_layer keel_layer_ops_cast = {
    .type = { KEEL_OPERATION_HEAD("Cast", "core", "Numbers of another type."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
