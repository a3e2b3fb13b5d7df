/* A diagonal of matrices that two dims of a row make. */
#ifndef KEEL_LAYERS_OPERATIONS_DIAGONAL_H
#define KEEL_LAYERS_OPERATIONS_DIAGONAL_H
#include "layers/operations/_values.h"

typedef struct args_t {
    int64_t offset, axis1, axis2;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, offset, "0", -1e9, 1e9, "which diagonal; 0 is the main one"),
    KEEL_INT(args_t, axis1, "0", -7, 7, "the rows of the matrices, the batch is 0"),
    KEEL_INT(args_t, axis2, "1", -7, 7, "their columns"),
    { 0 },
};

/* It becomes the last dim. */
static inline keel_status emit_diagonal(keel_emit *e, keel_value *out)
{
    const args_t *a = e->args;
    const int64_t k = a->offset;
    int64_t axis1, axis2;
    keel_value x;
    KEEL_TRY(keel_row_axis(e, a->axis1, &axis1));
    KEEL_TRY(keel_row_axis(e, a->axis2, &axis2));
    if (axis1 == axis2) return keel_fail(KEEL_EARG, "axis1 and axis2 must differ");
    KEEL_TRY(keel_emit_two_last(e, e->in[0], axis1, axis2, &x));
    keel_shape s = *keel_value_shape(e, x);
    const int64_t rows = s.dim[s.rank - 2], columns = s.dim[s.rank - 1];
    const int64_t down = k < 0 ? -k : 0, right = k > 0 ? k : 0;
    const int64_t length = rows - down < columns - right ? rows - down : columns - right;
    if (length < 1) return keel_fail(KEEL_ESHAPE, "offset: the diagonal is empty");
    /* one after another in memory, neighbours of the diagonal are columns + 1 apart */
    s.dim[s.rank-- - 2] = rows * columns;
    KEEL_TRY(keel_emit_view(e, &s, x, &x));
    keel_slice_args op = keel_slice_all(&s);
    op.begin[s.rank - 1] = down * columns + right;
    op.count[s.rank - 1] = length;
    op.step[s.rank - 1] = length > 1 ? columns + 1 : 1;
    return keel_emit_on(e, &keel_op_slice, &op, &x, 1, out);
}

#endif
