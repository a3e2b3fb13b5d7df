/* Casts numbers to a real type, to whole numbers or to bool. */
#include "layers/operations/_cast.h"

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, NULL, "float32, bfloat16, float16, bool, int32 or int64"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_cast(e, ((const args_t *)e->args)->dtype, false, e->in[0], e->out);
}

KEEL_ARGS_OPERATION(ops_cast, "Cast", "core", 1, "Numbers of another type.")
