/* Sums over dims of a value and of an array. */
#include "layers/operations/_einsum.h"

typedef struct args_t {
    json_t *axes;
} args_t;

static const keel_field fields[] = {
    KEEL_EITHER(args_t, axes, "2",
                "how many dims, the last of one and the first of the other; or which"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const json_t *axes = ((const args_t *)e->args)->axes, *v;
    int64_t of[2][KEEL_RANK_MAX];
    size_t n = json_is_integer(axes) ? (size_t)json_integer_value(axes) : 1;
    if (json_is_array(json_array_get(axes, 0))) n = json_array_size(json_array_get(axes, 0));
    if (n > KEEL_RANK_MAX || (json_is_array(axes) && json_array_size(axes) != 2))
        return keel_fail(KEEL_EARG, "axes: a number of dims, or the dims of each operand");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < n; i++) {
            v = json_array_get(axes, k);
            if (json_is_array(v)) v = json_array_get(v, i);
            of[k][i] = json_is_integer(v) ? json_integer_value(v)
                       : k                ? (int64_t)i
                                          : (int64_t)(i - n);
            if (!v != !json_is_array(axes))
                return keel_fail(KEEL_EARG, "axes: as many dims of both operands");
        }
    return keel_emit_contraction(e, (int)n, of[0], of[1]);
}

KEEL_ARGS_OPERATION(ops_tensordot, "Tensordot", "numpy", 1,
                    "Sums over dims of a value and of an array.", .whole = KEEL_WHOLE_KEPT)
