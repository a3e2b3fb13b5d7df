/* A block of places of each row. */
#include "layers/operations/_block.h"

typedef struct args_t {
    json_t *shape;
} args_t;

static const keel_field fields[] = {
    KEEL_LIST(args_t, shape, NULL, "of the block, with the batch (null or any number) first"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const json_t *shape = ((const args_t *)e->args)->shape;
    keel_shape size = { 0 };
    if (json_array_size(shape) < 1 || json_array_size(shape) > KEEL_RANK_MAX + 1)
        return keel_fail(KEEL_EARG, "shape: a list with a number for each dim");
    for (size_t i = 1; i < json_array_size(shape); i++)
        size.dim[size.rank++] = json_integer_value(json_array_get(shape, i));
    keel_slice_args op = keel_slice_all(&size);
    KEEL_TRY(block_begin(e, &size, op.begin));
    return keel_emit_on(e, &keel_op_slice, &op, e->in, 1, e->out);
}

KEEL_ARGS_OPERATION(ops_slice, "Slice", "core", 1, "A block of places of each row.",
                    .whole = KEEL_WHOLE_KEPT)
