/* See _quantile.h. The numbers are sorted along one dim, NaN last. Of n numbers, q is at place
 * (n - 1) q, between two of them. */
#include "layers/operations/_quantile.h"
#include "ops/rounded.h"
#include <math.h>

keel_status keel_quantile_q(const keel_emit *e, double *q)
{
    keel_operand x;
    x = (keel_operand){ .value = json_is_array(keel_argument(e, 1, "q")) ? 0 : -1 };
    if (x.value < 0) KEEL_TRY(keel_operand_at(e, 1, "q", &x));
    if (!x.given || x.value >= 0)
        return keel_fail(KEEL_EUNSUP, "argument q: one number is supported, since the results of "
                                      "several come before the batch");
    *q = (double)(float)x.constant; /* as Keras takes it */
    return KEEL_OK;
}

/* The dims of input 0 that it is over as one, the last. */
static keel_status flatten(keel_emit *e, const keel_reduce_args *over, keel_value *out)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_shape flat = { 0 };
    int64_t from[KEEL_RANK_MAX], n = 1;
    int k = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < in.rank; d++)
            if (over->over[d] == (pass == 1)) from[k++] = d;
    for (int d = 0; d < in.rank; d++) {
        if (over->over[d])
            n *= in.dim[d];
        else
            flat.dim[flat.rank++] = in.dim[d];
    }
    flat.dim[flat.rank++] = n;
    KEEL_TRY(keel_emit_permuted(e, from, e->in[0], out));
    return keel_emit_view(e, &flat, *out, out);
}

/* a (1 - part) + b part */
static keel_status blend(keel_emit *e, keel_value a, keel_value b, double part, keel_value *out)
{
    *out = part == 1 ? b : a;
    if (part == 0 || part == 1) return KEEL_OK;
    KEEL_TRY(keel_emit_scaled(e, a, 1 - part, 0, &a));
    KEEL_TRY(keel_emit_scaled(e, b, part, 0, &b));
    return keel_emit_pair(e, &keel_op_plus, a, b, out);
}

static keel_status of_all(keel_emit *e, int method, double q, keel_value sorted, keel_value *out)
{
    const keel_shape s = *keel_value_shape(e, sorted);
    const int last = s.rank - 1;
    const int64_t n = s.dim[last];
    const double at = (double)(n - 1) * q;
    int64_t low = (int64_t)floor(at), high = (int64_t)ceil(at);
    double part = 0.5; /* of the lower one */
    keel_value x[3], none;
    if (method == KEEL_BETWEEN_LINEAR) {
        low = high > 0 ? high - 1 : 0;
        high = low + 1 < n ? low + 1 : n - 1;
        part = (double)(float)((double)high - at);
    } else if (method == KEEL_BETWEEN_NEAREST) {
        low = high = (int64_t)nearbyint(at);
    } else if (method != KEEL_BETWEEN_MIDPOINT) {
        part = method == KEEL_BETWEEN_LOWER;
    }
    KEEL_TRY(keel_emit_part(e, sorted, last, high, 1, &x[0]));
    KEEL_TRY(keel_emit_part(e, sorted, last, low, 1, &x[1]));
    KEEL_TRY(keel_emit_part(e, sorted, last, n - 1, 1, &x[2]));
    KEEL_TRY(blend(e, x[0], x[1], part, out));
    KEEL_TRY(keel_emit_no_number(e, x[2], &none));
    return keel_emit_choice(e, none, KEEL_OF_NUMBER(NAN), KEEL_OF_VALUE(*out), out);
}

static keel_status rounded(keel_emit *e, keel_rounding to, keel_value x, keel_value *out)
{
    const keel_rounded_args op = { .to = to };
    return keel_emit_on(e, &keel_op_rounded, &op, &x, 1, out);
}

static keel_status at_places(keel_emit *e, keel_value sorted, keel_value places, keel_value *out)
{
    const keel_axis_args last = { .axis = -1 };
    return keel_emit_on(e, &keel_op_take_along, &last, (keel_value[]){ sorted, places }, 2, out);
}

/* The same where each row has its own count of numbers, before NaN. */
static keel_status of_numbers(keel_emit *e, int method, double q, keel_value sorted,
                              keel_value *out)
{
    keel_value count, at, low, high, part, x[2];
    KEEL_TRY(keel_emit_compared(e, KEEL_EQUAL, sorted, sorted, &count));
    const int last = keel_value_shape(e, count)->rank - 1;
    KEEL_TRY(keel_emit_reduced(e, KEEL_REDUCE_SUM, count, last, true, &count));
    KEEL_TRY(keel_emit_scaled(e, count, q, -q, &at));
    if (method == KEEL_BETWEEN_NEAREST) {
        KEEL_TRY(rounded(e, KEEL_NEAREST, at, &at));
        return at_places(e, sorted, at, out);
    }
    KEEL_TRY(rounded(e, KEEL_FLOOR, at, &low));
    KEEL_TRY(rounded(e, KEEL_CEIL, at, &high));
    if (method == KEEL_BETWEEN_LOWER) return at_places(e, sorted, low, out);
    if (method == KEEL_BETWEEN_HIGHER) return at_places(e, sorted, high, out);
    if (method == KEEL_BETWEEN_LINEAR) {
        KEEL_TRY(keel_emit_scaled(e, high, 1, -1, &low));
        KEEL_TRY(keel_emit_with(e, &keel_op_maximum, low, 0, &low));
        KEEL_TRY(keel_emit_scaled(e, low, 1, 1, &high));
        KEEL_TRY(keel_emit_scaled(e, count, 1, -1, &count));
        KEEL_TRY(keel_emit_pair(e, &keel_op_minimum, high, count, &high));
    }
    KEEL_TRY(at_places(e, sorted, low, &x[0]));
    KEEL_TRY(at_places(e, sorted, high, &x[1]));
    if (method == KEEL_BETWEEN_MIDPOINT) return blend(e, x[0], x[1], 0.5, out);
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, high, at, &part));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x[0], part, &x[0]));
    KEEL_TRY(keel_emit_scaled(e, part, -1, 1, &part));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x[1], part, &x[1]));
    return keel_emit_pair(e, &keel_op_plus, x[0], x[1], out);
}

keel_status keel_emit_quantile(keel_emit *e, const keel_quantile *a, double q, bool skips)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_reduce_args over = { 0 };
    keel_shape out = { 0 };
    keel_value x;
    if (!(q >= 0 && q <= 1)) return keel_fail(KEEL_EARG, "q: it is no part of the numbers");
    if (a->axis.count == 0) return keel_fail(KEEL_EARG, "axis: there must be one");
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &over));
    for (int d = 0; d < in.rank; d++)
        if (!over.over[d] || a->keepdims) out.dim[out.rank++] = over.over[d] ? 1 : in.dim[d];
    KEEL_TRY(flatten(e, &over, &x));
    KEEL_TRY(keel_emit_along(e, &keel_op_sorted, x, -1, &x));
    KEEL_TRY((skips ? of_numbers : of_all)(e, a->method, q, x, &x));
    return keel_emit_view(e, &out, x, e->out);
}
