/* The nearest whole numbers, of halves the even ones; or the nearest with that many digits behind
 * the point. */
#include "layers/operations/_operation.h"
#include "layers/operations/_values.h"
#include "ops/rounded.h"
#include <math.h>

typedef struct args_t {
    int64_t decimals;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, decimals, "0", -30, 30, "digits behind the point"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_rounded_args how = { .to = KEEL_NEAREST };
    const double factor = pow(10, (double)((const args_t *)e->args)->decimals);
    keel_value x = e->in[0];
    if (factor == 1) return keel_emit_unary(e, &keel_op_rounded, &how);
    KEEL_TRY(keel_emit_scaled(e, x, factor, 0, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_rounded, &how, &x, 1, &x));
    return keel_emit_with(e, &keel_op_divide, x, factor, e->out);
}

KEEL_ARGS_OPERATION(ops_round, "Round", "numpy", 1,
                    "The nearest whole numbers, of halves the even ones.", .whole = KEEL_WHOLE_KEPT)
