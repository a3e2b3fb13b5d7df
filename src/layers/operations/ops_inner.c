/* Sums over the last dims of a value and of an array. */
#include "layers/operations/_einsum.h"

static keel_status emit(keel_emit *e)
{
    const int64_t last = -1;
    return keel_emit_contraction(e, 1, &last, &last);
}

KEEL_PLAIN_OPERATION(ops_inner, "Inner", "numpy", 1,
                     "Sums over the last dims of a value and of an array.",
                     .whole = KEEL_WHOLE_KEPT)
