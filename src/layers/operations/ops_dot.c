/* The last dim of a value times an array. */
#include "layers/operations/_einsum.h"

static keel_status emit(keel_emit *e)
{
    const int64_t last = -1;
    const json_t *array = keel_argument(e, 1, "x2");
    const int64_t of = json_is_array(json_array_get(array, 0)) ? -2 : -1;
    return keel_emit_contraction(e, 1, &last, &of);
}

KEEL_PLAIN_OPERATION(ops_dot, "Dot", "numpy", 1, "The last dim of a value times an array.",
                     .whole = KEEL_WHOLE_KEPT)
