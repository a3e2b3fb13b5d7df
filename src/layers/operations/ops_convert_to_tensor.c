/* The same numbers: Keras's attention writes it where it passes a mask on. */
#include "layers/operations/_cast.h"

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, "null", "of the numbers; null: theirs"),
    KEEL_IGNORE("sparse", "whether a sparse tensor stays one: the same numbers"),
    KEEL_IGNORE("ragged", "whether a ragged tensor stays one, which no value is"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_cast(e, ((const args_t *)e->args)->dtype, false, e->in[0], e->out);
}

KEEL_ARGS_OPERATION(ops_convert_to_tensor, "ConvertToTensor", "core", 1, "The same numbers.")
