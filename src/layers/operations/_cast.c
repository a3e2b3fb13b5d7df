/* See _cast.h. */
#include "layers/operations/_cast.h"
#include "ops/rounded.h"
#include "tensor/narrow.h"
#include <string.h>

static const struct {
    const char *name;
    double least, most;
    bool wraps; /* Keras leaves the low bits of what is beyond it */
} whole[] = {
    { "int8", -128, 127, true },
    { "uint8", 0, 255, true },
    { "int16", -32768, 32767, true },
    { "uint16", 0, 65535, true },
    { "int32", -2147483648.0, 2147483647.0, false },
    { "int64", -9223372036854775808.0, 9223372036854775807.0, false },
};

/* Numbers within a narrow type. The limit is a number of the type that x has: of bfloat16 the one
 * before 65504, which it has not, is 65280. */
static keel_status clamp(keel_emit *e, keel_dtype narrow, keel_value x, keel_value *out)
{
    const keel_dtype own = keel_graph_spec(e->graph, x)->dtype;
    double most = keel_real_largest(narrow);
    if (keel_real_as(own, most) > most) most = 65280;
    KEEL_TRY(keel_emit_with(e, &keel_op_maximum, x, -most, &x));
    return keel_emit_with(e, &keel_op_minimum, x, most, out);
}

/* What the operation does after the cast is held in the new type, too. */
static keel_status held_as(keel_emit *e, keel_dtype type, keel_value x, keel_value *out)
{
    e->graph->held = type;
    return keel_graph_cast(e->graph, x, type, out);
}

keel_status keel_emit_cast(keel_emit *e, const char *dtype, bool clamps, keel_value x,
                           keel_value *out)
{
    static const keel_rounded_args to_int32 = { .to = KEEL_TO_INT32 };
    static const keel_rounded_args to_int64 = { .to = KEEL_TO_INT64 };
    keel_dtype narrow;
    *out = x;
    if (!dtype) return KEEL_OK;
    e->gives = KEEL_WHOLE_NEVER;
    if (!strcmp(dtype, "float32")) return held_as(e, e->graph->real, x, out);
    if (e->graph->real == KEEL_FLOAT32 && keel_dtype_find_narrow(&narrow, dtype)) {
        if (clamps) KEEL_TRY(clamp(e, narrow, x, &x));
        return held_as(e, narrow, x, out);
    }
    e->gives = KEEL_WHOLE_ALWAYS;
    KEEL_TRY(held_as(e, e->graph->real, x, &x));
    if (!strcmp(dtype, "bool")) return keel_emit_is(e, KEEL_NOT_EQUAL, x, 0, out);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (strcmp(dtype, whole[i].name) || (whole[i].wraps && !clamps)) continue;
        if (clamps) {
            KEEL_TRY(keel_emit_with(e, &keel_op_maximum, x, whole[i].least, &x));
            KEEL_TRY(keel_emit_with(e, &keel_op_minimum, x, whole[i].most, &x));
        }
        const keel_rounded_args *how = strcmp(dtype, "int64") ? &to_int32 : &to_int64;
        KEEL_TRY(keel_emit_on(e, &keel_op_rounded, how, &x, 1, &x));
        /* No gradient at all, as in Keras: 0 times the slope of what x is made of may be NaN. */
        return keel_emit_on(e, &keel_op_stop_gradient, NULL, &x, 1, out);
    }
    return keel_fail(KEEL_EUNSUP,
                     "dtype '%.40s' is not supported: float32, bfloat16, float16, bool, int32 and "
                     "int64 are (values of a model are real numbers, and small whole numbers wrap "
                     "round in Keras)",
                     dtype);
}

keel_status keel_float32_only(const char *dtype, const char *why)
{
    if (!dtype || !strcmp(dtype, "float32")) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported, only float32: %s", dtype, why);
}
