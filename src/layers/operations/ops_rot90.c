/* Quarter turns of the plane of two dims, from the first to the second. */
#include "layers/operations/_values.h"

typedef struct args_t {
    int64_t k;
    keel_ints axes;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, k, "1", -1e9, 1e9, "how many"),
    KEEL_INTS(args_t, axes, 2, "[0, 1]", -7, 7, "the two dims, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int64_t turns = (a->k % 4 + 4) % 4;
    keel_value x = e->in[0];
    int64_t from[KEEL_RANK_MAX], axis[2];
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_row_axis(e, a->axes.at[i], &axis[i]));
    if (axis[0] == axis[1]) return keel_fail(KEEL_EARG, "axes: they must differ");
    if (turns == 2) KEEL_TRY(keel_emit_reversed(e, x, axis[0], &x));
    if (turns == 1 || turns == 2) KEEL_TRY(keel_emit_reversed(e, x, axis[1], &x));
    for (int d = 0; d < KEEL_RANK_MAX; d++) from[d] = d;
    from[axis[0]] = axis[1];
    from[axis[1]] = axis[0];
    if (turns % 2) KEEL_TRY(keel_emit_permuted(e, from, x, &x));
    if (turns == 3) KEEL_TRY(keel_emit_reversed(e, x, axis[1], &x));
    e->out[0] = x;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_rot90, "Rot90", "numpy", 1, "Quarter turns of the plane of two dims.",
                    .whole = KEEL_WHOLE_KEPT)
