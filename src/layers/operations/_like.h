/* Values with the shape of another and one number everywhere: OnesLike, ZerosLike. */
#ifndef KEEL_LAYERS_OPERATIONS_LIKE_H
#define KEEL_LAYERS_OPERATIONS_LIKE_H
#include "layers/operations/_operation.h"
#include <string.h>

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, "null", "float32, bool or null"),
    { 0 },
};

static inline keel_status emit_like(keel_emit *e, double value)
{
    const keel_where_args op = { .fixed = { true, true }, .constant = { value, value } };
    const args_t *a = e->args;
    if (a->dtype && strcmp(a->dtype, "float32") && strcmp(a->dtype, "bool"))
        return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported: float32 and bool are",
                         a->dtype);
    return keel_emit_unary(e, &keel_op_where, &op);
}

#endif
