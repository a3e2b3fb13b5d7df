/* The product over axes, without NaN. */
#include "layers/operations/_nan.h"
#include "layers/operations/_product.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_reduction *a = e->args;
    keel_value x;
    KEEL_TRY(emit_numbers(e, 1, &x));
    return emit_product(e, &a->axis, a->keepdims, x);
}

KEEL_REDUCTION_LAYER(ops_nanprod, "Nanprod", "numpy", "The product over axes, without NaN.")
