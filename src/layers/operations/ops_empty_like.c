/* Values with the shape of another, which nothing may depend on: zeros, as in Keras on TensorFlow.
 */
#include "layers/operations/_like.h"

static keel_status emit(keel_emit *e)
{
    return emit_like(e, 0);
}

KEEL_ARGS_OPERATION(ops_empty_like, "EmptyLike", "numpy", 1, "Values with the shape of another.")
