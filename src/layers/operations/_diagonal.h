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
    int64_t axis1, axis2;
    KEEL_TRY(keel_row_axis(e, a->axis1, &axis1));
    KEEL_TRY(keel_row_axis(e, a->axis2, &axis2));
    if (axis1 == axis2) return keel_fail(KEEL_EARG, "axis1 and axis2 must differ");
    return keel_emit_diagonal_of(e, e->in[0], axis1, axis2, a->offset, out);
}

#endif
