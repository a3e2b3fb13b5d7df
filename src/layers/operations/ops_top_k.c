/* The largest of the last dim, and where they are. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t k;
    bool sorted;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, k, NULL, 1, 1e9, "how many"),
    KEEL_BOOL(args_t, sorted, "true", "from the largest on; they are so in any case"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const keel_axis_args last = { .axis = in.rank - 1 };
    keel_value at;
    if (in.rank < 1) return keel_fail(KEEL_ESHAPE, "rows of one number have no largest ones");
    if (a->k > in.dim[last.axis])
        return keel_fail(KEEL_ESHAPE, "k is %lld, of %lld numbers", (long long)a->k,
                         (long long)in.dim[last.axis]);
    KEEL_TRY(keel_emit_scaled(e, e->in[0], -1, 0, &at));
    KEEL_TRY(keel_emit_on(e, &keel_op_argsort, &last, &at, 1, &at));
    KEEL_TRY(keel_emit_part(e, at, last.axis, 0, a->k, &at));
    if (keel_emit_is_whole(e, 0)) e->gives = KEEL_WHOLE_ALWAYS;
    KEEL_TRY(keel_emit_outputs(e, 2));
    e->out[1] = at;
    return keel_emit_on(e, &keel_op_take_along, &last, (keel_value[]){ e->in[0], at }, 2, e->out);
}

KEEL_ARGS_OPERATION(ops_top_k, "TopK", "math", 1,
                    "The largest of the last dim, and where they are.", .places = true,
                    .whole = KEEL_WHOLE_SECOND)
