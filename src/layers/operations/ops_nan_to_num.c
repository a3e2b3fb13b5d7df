/* Finite numbers in place of NaN and of the infinities. */
#include "layers/operations/_values.h"
#include "tensor/narrow.h"
#include <math.h>

typedef struct args_t {
    double nan, posinf, neginf;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, nan, "0.0", 0, 0, "for NaN"),
    KEEL_FLOAT(args_t, posinf, "null", 0, 0, "for infinity; null: the largest number"),
    KEEL_FLOAT(args_t, neginf, "null", 0, 0, "for minus infinity; null: the smallest number"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const double largest = keel_real_largest(e->graph->held);
    const double most = isnan(a->posinf) ? largest : a->posinf;
    const double least = isnan(a->neginf) ? -largest : a->neginf;
    keel_value x = e->in[0], is;
    KEEL_TRY(keel_emit_no_number(e, x, &is));
    KEEL_TRY(keel_emit_choice(e, is, KEEL_OF_NUMBER(a->nan), KEEL_OF_VALUE(x), &x));
    KEEL_TRY(keel_emit_is(e, KEEL_EQUAL, x, INFINITY, &is));
    KEEL_TRY(keel_emit_choice(e, is, KEEL_OF_NUMBER(most), KEEL_OF_VALUE(x), &x));
    KEEL_TRY(keel_emit_is(e, KEEL_EQUAL, x, -INFINITY, &is));
    return keel_emit_choice(e, is, KEEL_OF_NUMBER(least), KEEL_OF_VALUE(x), e->out);
}

KEEL_ARGS_OPERATION(ops_nan_to_num, "NanToNum", "numpy", 1, "Finite numbers in place of NaN.",
                    .whole = KEEL_WHOLE_KEPT)
