/* The places along each dim of a shape that the number of an element means. */
#include "layers/operations/_values.h"
#include "ops/rounded.h"

typedef struct args_t {
    keel_ints shape;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, shape, 0, NULL, 1, 1e9, "in which elements are numbered"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    static const keel_rounded_args floor_of = { .to = KEEL_FLOOR };
    const args_t *a = e->args;
    keel_value rest = e->in[0];
    if (keel_emit_in(e, 0)->shape.rank != 0)
        return keel_fail(KEEL_EUNSUP, "rows of one number are supported: of others Keras's "
                                      "backends make different places");
    if (a->shape.count < 1) return keel_fail(KEEL_EARG, "shape: it must have a dim");
    KEEL_TRY(keel_emit_outputs(e, a->shape.count));
    for (int d = a->shape.count - 1; d >= 0; d--) {
        const double n = (double)a->shape.at[d];
        KEEL_TRY(keel_emit_with(e, &keel_op_mod, rest, n, &e->out[d]));
        if (d == 0) break;
        KEEL_TRY(keel_emit_with(e, &keel_op_divide, rest, n, &rest));
        KEEL_TRY(keel_emit_on(e, &keel_op_rounded, &floor_of, &rest, 1, &rest));
    }
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_unravel_index, "UnravelIndex", "numpy", 1,
                    "The places along each dim that a number means.")
