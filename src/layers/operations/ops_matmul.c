/* Products of matrices. */
#include "layers/operations/_einsum.h"

static keel_status emit(keel_emit *e)
{
    const json_t *array = keel_argument(e, 1, "x2");
    const int64_t last = -1, of = -2;
    if (!json_is_array(array)) return keel_emit_one(e, &keel_op_matmul, NULL);
    if (!json_is_array(json_array_get(array, 0)) ||
        json_is_array(json_array_get(json_array_get(array, 0), 0)))
        return keel_fail(KEEL_EUNSUP, "argument x2: an array must be one matrix");
    return keel_emit_contraction(e, 1, &last, &of);
}

KEEL_PLAIN_OPERATION(ops_matmul, "Matmul", "numpy", 2, "Products of the matrices of each row.")
