/* The singular values of matrices. Their vectors are refused: each may be turned over, and Keras's
 * backends do not agree which are. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    bool compute_uv;
} args_t;

static const keel_field fields[] = {
    KEEL_IGNORE("full_matrices", "how many vectors there are"),
    KEEL_BOOL(args_t, compute_uv, "true", "vectors, too; only false is supported"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    if (((const args_t *)e->args)->compute_uv)
        return keel_fail(KEEL_EUNSUP, "compute_uv true is not supported: the signs of the vectors "
                                      "are open");
    return keel_emit_unary(e, &keel_op_singular_values, NULL);
}

KEEL_ARGS_OPERATION(ops_svd, "SVD", "linalg", 1, "The singular values of matrices.")
