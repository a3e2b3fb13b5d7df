/* 1 where two numbers are equal or nearly so: |x1 - x2| <= atol + rtol |x2|. */
#include "layers/operations/_values.h"
#include <math.h>

typedef struct args_t {
    bool equal_nan;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, equal_nan, "false", "NaN is near NaN"),
    { 0 },
};

static keel_status tolerance(const keel_emit *e, size_t place, const char *name, double dflt,
                             double *out)
{
    keel_operand o;
    KEEL_TRY(keel_operand_at(e, place, name, &o));
    if (o.given && o.value >= 0) return keel_fail(KEEL_EUNSUP, "%s must be a number", name);
    *out = o.given ? o.constant : dflt;
    return KEEL_OK;
}

/* |x2| rtol + atol, or its number. */
static keel_status allowed(keel_emit *e, const keel_operand *x2, keel_operand *out)
{
    double rtol, atol;
    KEEL_TRY(tolerance(e, 2, "rtol", 1e-5, &rtol));
    KEEL_TRY(tolerance(e, 3, "atol", 1e-8, &atol));
    *out = (keel_operand){ .value = -1, .constant = atol + rtol * fabs(x2->constant) };
    if (x2->value < 0) return KEEL_OK;
    KEEL_TRY(keel_emit_on(e, &keel_op_absolute, NULL, &x2->value, 1, &out->value));
    return keel_emit_scaled(e, out->value, rtol, atol, &out->value);
}

static keel_status emit(keel_emit *e)
{
    const bool equal_nan = ((const args_t *)e->args)->equal_nan;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_compare_args near = { .is = KEEL_LESS_EQUAL };
    keel_operand x2, within;
    keel_value x1, far, none, both;
    KEEL_TRY(keel_value_at(e, 0, "x1", rank, &x1));
    KEEL_TRY(keel_operand_or_array(e, 1, "x2", rank, &x2));
    if (!x2.given) return keel_fail(KEEL_EARG, "argument x2: it must be given");
    x2.constant = keel_emit_constant(e, x2.constant);
    if (equal_nan && x2.value < 0 && isnan(x2.constant)) return keel_emit_no_number(e, x1, e->out);
    KEEL_TRY(allowed(e, &x2, &within));
    if (x2.value < 0)
        KEEL_TRY(keel_emit_scaled(e, x1, 1, -x2.constant, &far));
    else
        KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x1, x2.value, &far));
    KEEL_TRY(keel_emit_on(e, &keel_op_absolute, NULL, &far, 1, &far));
    near.operands.constant = within.constant;
    KEEL_TRY(keel_emit_on(e, &keel_op_compare, &near, (keel_value[]){ far, within.value },
                          x2.value < 0 ? 1 : 2, e->out));
    if (!equal_nan || x2.value < 0) return KEEL_OK;
    KEEL_TRY(keel_emit_no_number(e, x1, &none));
    KEEL_TRY(keel_emit_no_number(e, x2.value, &both));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, none, both, &both));
    return keel_emit_pair(e, &keel_op_plus, e->out[0], both, e->out);
}

const keel_layer keel_layer_ops_isclose = {
    .type = { KEEL_OPERATION_HEAD("Isclose", "numpy",
                                  "1 where two numbers are equal or nearly so."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 2,
    .whole = KEEL_WHOLE_ALWAYS,
    .operation = true,
    .wide_alone = true,
    .emit = emit,
};
