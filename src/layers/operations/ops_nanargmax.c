/* Where the largest element is that is a number; -1 if there is none. */
#include "layers/operations/_arg.h"
#include "layers/operations/_values.h"
#include <math.h>

extern const keel_layer keel_layer_ops_argmax;

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value none, all, x, y;
    int64_t axis;
    if (a->axis == KEEL_INT_NULL) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    KEEL_TRY(keel_emit_no_number(e, e->in[0], &none));
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_MIN, none, axis, a->keepdims, &all));
    KEEL_TRY(keel_emit_choice(e, none, KEEL_OF_NUMBER(-INFINITY), KEEL_OF_VALUE(e->in[0]), &x));
    KEEL_TRY(keel_emit_instead(e, &keel_layer_ops_argmax, x));
    y = e->out[0];
    return keel_emit_choice(e, all, KEEL_OF_NUMBER(-1), KEEL_OF_VALUE(y), e->out);
}

KEEL_ARGS_OPERATION(ops_nanargmax, "Nanargmax", "numpy", 1, "Where the largest number is.",
                    .places = true, .whole = KEEL_WHOLE_ALWAYS)
