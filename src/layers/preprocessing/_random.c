/* See _random.h. */
#include "layers/preprocessing/_random.h"
#include <math.h>

keel_status keel_factor_range(keel_range *out, const keel_reals *factor, const char *key,
                              keel_range bounds, bool all)
{
    if (factor->count < 1 || factor->count > 2)
        return keel_fail(KEEL_EARG, "%s must be a number or a pair of numbers", key);
    const double first = factor->at[0], last = factor->at[factor->count - 1];
    const double least = fmin(first, last), most = fmax(first, last);
    const bool pair = factor->count == 2 && !all;
    if (!(pair ? least <= bounds.high && most >= bounds.low
               : least >= bounds.low && most <= bounds.high))
        return keel_fail(KEEL_EARG, "%s %g is not in [%g, %g]", key,
                         most > bounds.high ? most : least, bounds.low, bounds.high);
    *out = factor->count == 2 ? (keel_range){ least, most }
                              : (keel_range){ fmax(-fabs(first), bounds.low), fabs(first) };
    return KEEL_OK;
}

keel_status keel_value_range(keel_range *out, const keel_reals *value_range)
{
    if (value_range->count != 2) return keel_fail(KEEL_EARG, "value_range must be two numbers");
    out->low = fmin(value_range->at[0], value_range->at[1]);
    out->high = fmax(value_range->at[0], value_range->at[1]);
    return KEEL_OK;
}

static keel_status ready_within(void *args, double least)
{
    keel_factor_args *a = args;
    KEEL_TRY(keel_factor_range(&a->range, &a->factor, "factor", (keel_range){ least, 1 }, false));
    return keel_value_range(&a->values, &a->value_range);
}

keel_status keel_factor_ready(void *args)
{
    return ready_within(args, 0);
}

keel_status keel_factor_ready_signed(void *args)
{
    return ready_within(args, -1);
}

keel_status keel_emit_chance(keel_emit *e, const keel_op *op, const void *args)
{
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    e->out[0] = e->in[0];
    return e->training ? keel_emit_one(e, op, args) : KEEL_OK;
}

keel_status keel_emit_warp(keel_emit *e, const keel_warp_args *op, const keel_warp_look *look)
{
    keel_warp_args a = *op;
    if (look) {
        a.fill = (keel_warp_fill)look->fill_mode;
        a.nearest = look->interpolation == 1;
        a.fill_value = look->fill_value;
    }
    return keel_emit_chance(e, &keel_op_warp, &a);
}

keel_status keel_recolor_check(keel_recolor_kind kind, const keel_spec *image)
{
    if (keel_recolor_takes(kind, image->shape.dim[2])) return KEEL_OK;
    return keel_fail(KEEL_ESHAPE, "images of %lld channels are not red, green and blue",
                     (long long)image->shape.dim[2]);
}

keel_status keel_emit_recolor(keel_emit *e, const keel_recolor_args *op)
{
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    KEEL_TRY(keel_recolor_check(op->kind, in));
    return keel_emit_chance(e, &keel_op_recolor, op);
}

keel_status keel_emit_mixing(keel_emit *e)
{
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    e->out[0] = e->in[0];
    if (!e->training) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "layer '%s' mixes rows of a batch with each other, but not their "
                     "labels, which no layer sees: mix rows before they are fed, and "
                     "train a model without it",
                     e->name);
}
