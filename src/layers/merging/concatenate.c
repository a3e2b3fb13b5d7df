/* Its inputs one after another along one axis. */
#include "layers/merging/_merge.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "-1", -7, 7, "along which dim, counted with the batch"),
    { 0 },
};

/* Along the last axis a place counts if it counts in any input; along another, masks are joined
 * like their values. */
static keel_status join_masks(keel_emit *e, const keel_axis_args *op)
{
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    if (keel_emit_masked(e) < 0) return KEEL_OK;
    if (op->axis == in->rank - 1) return keel_emit_any_mask(e);
    for (int i = 0; i < e->n_in; i++)
        if (e->mask[i] < 0 || keel_graph_spec(e->graph, e->mask[i])->shape.rank != in->rank - 1)
            return keel_fail(KEEL_EUNSUP,
                             "Concatenate along axis %lld of masked and other values is not "
                             "supported",
                             (long long)op->axis + 1);
    return keel_emit_on(e, &keel_op_concatenate, op, e->mask, e->n_in, e->out_mask);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_axis_args op;
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    KEEL_TRY(join_masks(e, &op));
    return keel_emit_one(e, &keel_op_concatenate, &op);
}

const keel_layer keel_layer_concatenate = {
    .type = { KEEL_LAYER_HEAD("Concatenate", "Puts its inputs one after another along an axis."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = -1,
    .supports_masking = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
