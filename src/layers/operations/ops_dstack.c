/* Values one after another along the second dim of a row, which rows of one dim get first. */
#include "layers/operations/_operation.h"
#include "base/memory.h"

static keel_status emit(keel_emit *e)
{
    const keel_axis_args second = { .axis = 1 };
    keel_status s = KEEL_OK;
    if (keel_emit_in(e, 0)->shape.rank < 1)
        return keel_fail(KEEL_EUNSUP, "of rows of one number the batch would not come first");
    keel_value *parts = keel_calloc((size_t)e->n_in, sizeof *parts);
    if (!parts) return KEEL_ENOMEM;
    for (int i = 0; i < e->n_in && s >= 0; i++) {
        const keel_shape in = keel_emit_in(e, i)->shape;
        const keel_shape as = in.rank == 1 ? KEEL_SHAPE(in.dim[0], 1) : in;
        s = keel_emit_view(e, &as, e->in[i], &parts[i]);
    }
    if (s >= 0) s = keel_emit_on(e, &keel_op_concatenate, &second, parts, e->n_in, e->out);
    keel_free(parts);
    return s;
}

KEEL_PLAIN_OPERATION(ops_dstack, "Dstack", "numpy", -1,
                     "Values one after another along the second dim of a row.")
