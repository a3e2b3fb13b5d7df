/* Dims of 1 repeated, up to a shape. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    json_t *shape;
} args_t;

static const keel_field fields[] = {
    KEEL_LIST(args_t, shape, NULL, "with the batch (null or any number) first"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const json_t *shape = ((const args_t *)e->args)->shape;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_value x = e->in[0];
    if (json_array_size(shape) != (size_t)in.rank + 1)
        return keel_fail(KEEL_EUNSUP,
                         "shape: %zu dims; it must have the %d of the value with the "
                         "batch: rows do not mix",
                         json_array_size(shape), in.rank + 1);
    for (int d = 0; d < in.rank; d++) {
        const json_t *v = json_array_get(shape, (size_t)d + 1);
        const int64_t to = json_is_null(v) ? in.dim[d] : json_integer_value(v);
        const keel_upsample_args op = { .axis = d, .factor = to };
        if (to == in.dim[d]) continue;
        if (in.dim[d] != 1 || to < 1)
            return keel_fail(KEEL_ESHAPE, "shape: dim %d of %lld cannot become %lld", d + 1,
                             (long long)in.dim[d], (long long)to);
        KEEL_TRY(keel_emit_on(e, &keel_op_upsample, &op, &x, 1, &x));
    }
    e->out[0] = x;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_broadcast_to, "BroadcastTo", "numpy", 1,
                    "Dims of 1 repeated, up to a shape.", .whole = KEEL_WHOLE_KEPT)
