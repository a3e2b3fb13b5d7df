/* As many times one number as a value has. */
#include "layers/operations/_operation.h"

#include <string.h>

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, "null", "float32 or null"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_operand fill;
    KEEL_TRY(keel_operand_at(e, 1, "fill_value", &fill));
    if (!fill.given || fill.value >= 0)
        return keel_fail(KEEL_EUNSUP, "fill_value must be a number");
    if (a->dtype && strcmp(a->dtype, "float32"))
        return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported: float32 is", a->dtype);
    const keel_where_args op = { .fixed = { true, true },
                                 .constant = { fill.constant, fill.constant } };
    return keel_emit_unary(e, &keel_op_where, &op);
}

KEEL_ARGS_OPERATION(ops_full_like, "FullLike", "numpy", 1,
                    "As many times one number as a value has.")
