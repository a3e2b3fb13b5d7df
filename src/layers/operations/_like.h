/* Values with the shape of another and one number everywhere: OnesLike, ZerosLike, FullLike. They
 * have the type of the other one: of whole numbers and truths they widen nothing. */
#ifndef KEEL_LAYERS_OPERATIONS_LIKE_H
#define KEEL_LAYERS_OPERATIONS_LIKE_H
#include "layers/operations/_cast.h"
#include <math.h>
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
    const args_t *a = e->args;
    if (a->dtype && !strcmp(a->dtype, "bool")) value = value != 0;
    if (!a->dtype && keel_emit_is_whole(e, 0)) {
        value = trunc(value);
        e->gives = KEEL_WHOLE_ALWAYS;
    }
    const keel_where_args op = { .fixed = { true, true }, .constant = { value, value } };
    keel_value x;
    if (a->dtype && strcmp(a->dtype, "float32") && strcmp(a->dtype, "bool"))
        return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported: float32 and bool are",
                         a->dtype);
    KEEL_TRY(keel_emit_cast(e, a->dtype, false, e->in[0], &x));
    return keel_emit_on(e, &keel_op_where, &op, &x, 1, e->out);
}

#endif
