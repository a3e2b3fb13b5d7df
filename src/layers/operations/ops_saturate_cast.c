/* Casts numbers to another type; what is beyond it becomes its nearest number. */
#include "layers/operations/_cast.h"

typedef struct args_t {
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, dtype, NULL, "float32, or a type of whole numbers"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_cast(e, ((const args_t *)e->args)->dtype, true, e->in[0], e->out);
}

KEEL_ARGS_OPERATION(ops_saturate_cast, "SaturateCast", "core", 1,
                    "Numbers of another type, or its nearest.")
