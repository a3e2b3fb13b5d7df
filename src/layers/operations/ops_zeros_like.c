/* Zeros in the shape of a value. */
#include "layers/operations/_operation.h"
#include <string.h>

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, "null", "float32, bool or null"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    static const keel_where_args op = { .fixed = { true, true }, .constant = { 0, 0 } };
    const args_t *a = e->args;
    if (a->dtype && strcmp(a->dtype, "float32") && strcmp(a->dtype, "bool"))
        return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported: float32 and bool are",
                         a->dtype);
    return keel_emit_unary(e, &keel_op_where, &op);
}

const keel_layer keel_layer_ops_zeros_like = {
    .type = { KEEL_OPERATION_HEAD("ZerosLike", "numpy", "As many zeros as a value has numbers."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
