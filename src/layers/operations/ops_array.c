/* The same numbers, or those of another type. */
#include "layers/operations/_cast.h"

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, "null", "float32, bool, int32, int64 or null"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_cast(e, ((const args_t *)e->args)->dtype, false, e->in[0], e->out);
}

KEEL_ARGS_OPERATION(ops_array, "Array", "numpy", 1, "The same numbers.", .whole = KEEL_WHOLE_KEPT)
