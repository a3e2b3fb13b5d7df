/* Products of two inputs, summed along one axis of each (counted with the batch): [.., C] and
 * [.., C] give all dims of the first but that, then those of the second. */
#include "layers/normalization/_unit.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints axes;
    bool normalize;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axes, -1, NULL, -7, 7, "which axis, or one of each input"),
    KEEL_BOOL(args_t, normalize, "false", "make the length along the axis 1 before"),
    { 0 },
};

static keel_status axis_of(const keel_emit *e, int i, int *axis)
{
    const args_t *a = e->args;
    const int64_t rank = keel_emit_in(e, i)->shape.rank + 1;
    const int64_t given = a->axes.at[a->axes.count > 1 ? i : 0];
    const int64_t at = given < 0 ? given + rank : given;
    if (a->axes.count > 2 || at < 1 || at >= rank)
        return keel_fail(KEEL_EARG,
                         "axes: %lld is no axis of input %d, which has %lld with the "
                         "batch, whose own cannot be summed over",
                         (long long)given, i, (long long)rank);
    *axis = (int)at - 1;
    return KEEL_OK;
}

/* Input i as a matrix, [others, n] or [n, others], and its other dims behind those of `out`. */
static keel_status matrix(keel_emit *e, int i, int axis, keel_value x, keel_value *y,
                          keel_shape *out)
{
    const keel_shape in = keel_emit_in(e, i)->shape;
    keel_permute_args order = { 0 };
    int64_t others = 1;
    int n = i;
    for (int d = 0; d < in.rank; d++) {
        if (d == axis) continue;
        if (out->rank == KEEL_RANK_MAX)
            return keel_fail(KEEL_EUNSUP, "the output has more than %d dims", KEEL_RANK_MAX);
        out->dim[out->rank++] = in.dim[d];
        others *= in.dim[d];
        order.from[n++] = d;
    }
    order.from[i == 0 ? in.rank - 1 : 0] = axis;
    bool moved = false;
    for (int d = 0; d < in.rank; d++) moved = moved || order.from[d] != d;
    if (moved) KEEL_TRY(keel_emit_on(e, &keel_op_permute, &order, &x, 1, &x));
    const int64_t sum = in.dim[axis];
    const keel_shape shape = KEEL_SHAPE(i == 0 ? others : sum, i == 0 ? sum : others);
    return keel_emit_view(e, &shape, x, y);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value both[2] = { e->in[0], e->in[1] };
    keel_shape out = { 0 };
    int axis[2];
    e->out_mask[0] = KEEL_MASK_NONE;
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(axis_of(e, i, &axis[i]));
        bool over[KEEL_RANK_MAX] = { false };
        over[axis[i]] = true;
        if (a->normalize) KEEL_TRY(keel_emit_unit(e, over, 1e-7, &both[i]));
    }
    const int64_t n[2] = { keel_emit_in(e, 0)->shape.dim[axis[0]],
                           keel_emit_in(e, 1)->shape.dim[axis[1]] };
    if (n[0] != n[1])
        return keel_fail(KEEL_ESHAPE, "axes: %lld and %lld places cannot be summed together",
                         (long long)n[0], (long long)n[1]);
    for (int i = 0; i < 2; i++) KEEL_TRY(matrix(e, i, axis[i], both[i], &both[i], &out));
    keel_value y;
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, both, 2, &y));
    if (out.rank == 0) out = KEEL_SHAPE(1);
    return keel_emit_view(e, &out, y, e->out);
}

const keel_layer keel_layer_dot = {
    .type = { KEEL_LAYER_HEAD("Dot", "Sums of products along an axis of two inputs."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 2,
    .max_inputs = 2,
    .takes_list = true,
    .supports_masking = true,
    .emit = emit,
};
