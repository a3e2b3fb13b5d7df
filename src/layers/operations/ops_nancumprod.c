/* Products of the places up to each one, with 1 for NaN. */
#include "layers/operations/_nan.h"

typedef struct args_t {
    int64_t axis;
    char *dtype;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "null", -7, 7, "along which dim, the batch is 0"),
    KEEL_STRING(args_t, dtype, "null", "of the numbers before they are multiplied; null: theirs"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_cumprod;
    return emit_without_nan(e, &keel_layer_ops_cumprod, 1);
}

KEEL_ARGS_OPERATION(ops_nancumprod, "Nancumprod", "numpy", 1,
                    "Products of the places up to each one, with 1 for NaN.",
                    .whole = KEEL_WHOLE_KEPT)
