/* Products of two inputs, summed along one axis of each (counted with the batch): [.., C] and
 * [.., C] give all dims of the first but that, then those of the second. */
#include "layers/normalization/_unit.h"
#include "layers/operations/_einsum.h"

typedef struct args_t {
    keel_ints axes;
    bool normalize;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axes, -1, NULL, -7, 7, "which axis, or one of each input"),
    KEEL_BOOL(args_t, normalize, "false", "make the length along the axis 1 before"),
    { 0 },
};

static keel_status axis_of(const keel_emit *e, int i, int64_t *axis)
{
    const args_t *a = e->args;
    const int64_t rank = keel_emit_in(e, i)->shape.rank + 1;
    const int64_t given = a->axes.at[a->axes.count > 1 ? i : 0];
    *axis = (given < 0 ? given + rank : given) - 1;
    if (a->axes.count <= 2 && *axis >= 0 && *axis < rank - 1) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "axes: %lld is no axis of input %d, which has %lld with the "
                     "batch, whose own cannot be summed over",
                     (long long)given, i, (long long)rank);
}

static keel_status emit(keel_emit *e)
{
    const keel_shape one = KEEL_SHAPE(1);
    const args_t *a = e->args;
    keel_term in[2] = { { .value = e->in[0] }, { .value = e->in[1] } };
    int64_t axis[2], n[2];
    for (int i = 0; i < 2; i++) {
        bool over[KEEL_RANK_MAX] = { false };
        KEEL_TRY(axis_of(e, i, &axis[i]));
        over[axis[i]] = true;
        n[i] = keel_emit_in(e, i)->shape.dim[axis[i]];
        if (a->normalize) KEEL_TRY(keel_emit_unit(e, over, 1e-7, &in[i].value));
    }
    e->out_mask[0] = KEEL_MASK_NONE;
    if (n[0] != n[1])
        return keel_fail(KEEL_ESHAPE, "axes: %lld and %lld places cannot be summed together",
                         (long long)n[0], (long long)n[1]);
    KEEL_TRY(keel_emit_summed(e, in, 1, &axis[0], &axis[1]));
    return keel_graph_spec(e->graph, e->out[0])->shape.rank
               ? KEEL_OK
               : keel_emit_view(e, &one, e->out[0], e->out);
}

const keel_layer keel_layer_dot = {
    .type = { KEEL_LAYER_HEAD("Dot", "Sums of products along an axis of two inputs."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 2,
    .max_inputs = 2,
    .takes_list = true,
    .supports_masking = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
