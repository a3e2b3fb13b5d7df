/* What keras.ops.one_hot and multi_hot share. */
#ifndef KEEL_LAYERS_OPERATIONS_ONE_HOT_H
#define KEEL_LAYERS_OPERATIONS_ONE_HOT_H
#include "layers/operations/_operation.h"
#include "ops/one_hot.h"
#include <string.h>

typedef struct args_t {
    int64_t num_classes;
    int64_t axis;
    char *dtype;
    bool sparse;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_classes, NULL, 1, 1e9, "how many places"),
    KEEL_INT(args_t, axis, "-1", -7, 7, "the new dim; only the last is supported"),
    KEEL_STRING(args_t, dtype, "null", "float32 or null"),
    KEEL_BOOL(args_t, sparse, "false", "as a sparse tensor, of the same numbers"),
    { 0 },
};

/* A new last dim of num_classes. */
static keel_status emit_one_hot(keel_emit *e, keel_value *out)
{
    const args_t *a = e->args;
    const keel_one_hot_args op = { .n = a->num_classes };
    if (a->axis != -1 && a->axis != keel_emit_in(e, 0)->shape.rank + 1)
        return keel_fail(KEEL_EUNSUP, "axis %lld: the new axis can only be the last",
                         (long long)a->axis);
    if (a->dtype && strcmp(a->dtype, "float32"))
        return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported: float32 is", a->dtype);
    return keel_emit_on(e, &keel_op_one_hot, &op, e->in, 1, out);
}

#endif
