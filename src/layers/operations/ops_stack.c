/* Values beside each other along a new axis. */
#include "base/memory.h"
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "0", -7, 7, "the new dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_reshape_args op = { 0 };
    keel_axis_args along = { 0 };
    keel_status s = KEEL_OK;
    KEEL_TRY(keel_new_axis(e, a->axis, &along.axis));
    keel_value *parts = keel_calloc((size_t)e->n_in, sizeof *parts);
    if (!parts) return KEEL_ENOMEM;
    for (int i = 0; i < e->n_in && s >= 0; i++) {
        const keel_shape *in = &keel_emit_in(e, i)->shape;
        if (in->rank != keel_emit_in(e, 0)->shape.rank)
            s = keel_fail(KEEL_ESHAPE, "its values must have equal shapes");
        else
            op.shape = keel_shape_with_one(*in, along.axis);
        if (s >= 0) s = keel_emit_on(e, &keel_op_reshape, &op, &e->in[i], 1, &parts[i]);
    }
    if (s >= 0) s = keel_emit_on(e, &keel_op_concatenate, &along, parts, e->n_in, e->out);
    keel_free(parts);
    return s;
}

KEEL_ARGS_OPERATION(ops_stack, "Stack", "numpy", -1, "Values beside each other along a new axis.",
                    .whole = KEEL_WHOLE_KEPT)
