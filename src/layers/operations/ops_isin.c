/* True where a number is in a list. */
#include "layers/operations/_against.h"

typedef struct args_t {
    bool invert;
} args_t;

static const keel_field fields[] = {
    KEEL_IGNORE("assume_unique", "the list has no number twice: nothing depends on it"),
    KEEL_BOOL(args_t, invert, "false", "true where it is not"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_value y;
    KEEL_TRY(emit_against(e, 1, "x2", KEEL_EQUAL, KEEL_REDUCE_MAX, NULL, &y));
    e->out[0] = y;
    return ((const args_t *)e->args)->invert ? keel_emit_scaled(e, y, -1, 1, e->out) : KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_isin, "IsIn", "numpy", 1, "Is it in a list?", .whole = KEEL_WHOLE_ALWAYS)
