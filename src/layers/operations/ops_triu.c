/* The elements of matrices above a diagonal, and those on it. */
#include "layers/operations/_operation.h"
#include "ops/band.h"

typedef struct args_t {
    int64_t k;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, k, "0", -1e9, 1e9, "the diagonal; 0 is the main one"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_band_args op = { .low = ((const args_t *)e->args)->k, .high = INT64_MAX };
    return keel_emit_unary(e, &keel_op_band, &op);
}

KEEL_ARGS_OPERATION(ops_triu, "Triu", "numpy", 1, "The part of matrices above a diagonal.",
                    .whole = KEEL_WHOLE_KEPT)
