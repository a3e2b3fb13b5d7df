/* A block of places of each row, replaced by that of another value. */
#include "layers/operations/_block.h"
#include "ops/pad.h"

static keel_status emit(keel_emit *e)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_pad_args op = { 0 };
    keel_operand updates;
    keel_value block, inside;
    KEEL_TRY(keel_operand_at(e, 2, "updates", &updates));
    if (updates.value < 0)
        return keel_fail(KEEL_EUNSUP, "updates must be a value of the model: an array would have "
                                      "numbers for each row of a batch");
    const keel_shape size = *keel_value_shape(e, updates.value);
    KEEL_TRY(block_begin(e, &size, op.before));
    for (int d = 0; d < in.rank; d++) op.behind[d] = in.dim[d] - op.before[d] - size.dim[d];
    KEEL_TRY(keel_emit_filled(e, updates.value, 1, &inside));
    KEEL_TRY(keel_emit_on(e, &keel_op_pad, &op, &inside, 1, &inside));
    KEEL_TRY(keel_emit_on(e, &keel_op_pad, &op, &updates.value, 1, &block));
    return keel_emit_choice(e, inside, KEEL_OF_VALUE(block), KEEL_OF_VALUE(e->in[0]), e->out);
}

KEEL_PLAIN_OPERATION(ops_slice_update, "SliceUpdate", "core", 2,
                     "A block of places replaced by another value.", .whole = KEEL_WHOLE_KEPT)
