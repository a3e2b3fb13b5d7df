/* Numbers less a given mean, by the root of a given variance. Both are arrays: values of the model
 * for all rows together would mix rows. */
#include "layers/operations/_centred.h"

typedef struct args_t {
    int64_t axis;
    double epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, NULL, -7, 7, "along which dim, the batch is 0"),
    KEEL_FLOAT(args_t, epsilon, "0.001", 0, 0, "added to the variance"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    static const char *const names[] = { "mean", "variance", "offset", "scale" };
    const args_t *a = e->args;
    bool over[KEEL_RANK_MAX] = { false };
    keel_value x, of[4];
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    over[axis] = true;
    for (size_t i = 0; i < 4; i++) KEEL_TRY(keel_factor_at(e, i + 1, names[i], over, &of[i]));
    if (of[0] < 0 || of[1] < 0) return keel_fail(KEEL_EARG, "mean and variance must be given");
    KEEL_TRY(keel_emit_scaled(e, of[1], 1, a->epsilon, &of[1]));
    KEEL_TRY(keel_emit_each(e, &keel_op_rsqrt, of[1], &of[1]));
    if (of[3] >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, of[1], of[3], &of[1]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, e->in[0], of[0], &x));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x, of[1], &x));
    if (of[2] >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_plus, x, of[2], &x));
    e->out[0] = x;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_batch_normalization, "BatchNorm", "nn", 1,
                    "Numbers less a given mean, by a given deviation.")
