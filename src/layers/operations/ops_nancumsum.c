/* Sums of the places up to each one, with 0 for NaN. */
#include "layers/operations/_nan.h"

typedef struct args_t {
    int64_t axis;
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    KEEL_STRING(args_t, dtype, "null", "of the numbers before they are added; null: theirs"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_cumsum;
    return emit_without_nan(e, &keel_layer_ops_cumsum, 0);
}

KEEL_ARGS_OPERATION(ops_nancumsum, "Nancumsum", "numpy", 1,
                    "Sums of the places up to each one, with 0 for NaN.", .whole = KEEL_WHOLE_KEPT)
