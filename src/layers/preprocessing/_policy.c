/* See _policy.h. */
#include "layers/preprocessing/_policy.h"
#include <math.h>

keel_status keel_policy_ready(void *args)
{
    keel_policy_args *a = args;
    KEEL_TRY(keel_factor_range(&a->strength, &a->factor, "factor", (keel_range){ 0, 1 }, true));
    return keel_value_range(&a->values, &a->value_range);
}

keel_status keel_policy_check(const keel_emit *e, bool all)
{
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    return all ? keel_recolor_check(KEEL_RECOLOR_FADE, in) : KEEL_OK;
}

static void add(keel_one_of_args *op, keel_one_of_choice choice)
{
    op->choice[op->n++] = choice;
}

static void add_recolor(keel_one_of_args *op, const keel_policy_args *a, uint32_t *next,
                        keel_recolor_args args)
{
    args.values = a->values;
    args.first = *next;
    *next += 4;
    add(op, (keel_one_of_choice){ &keel_op_recolor, .args.recolor = args });
}

static void add_warp(keel_one_of_args *op, const keel_policy_args *a, uint32_t *next,
                     keel_warp_args args)
{
    args.nearest = a->interpolation == 1;
    args.first = *next;
    *next += 4;
    add(op, (keel_one_of_choice){ &keel_op_warp, .args.warp = args });
}

keel_status keel_emit_policy(keel_emit *e, const keel_policy_args *a, keel_policy_draws draws,
                             bool all, bool may_stay, keel_value in, keel_value *out)
{
    const keel_range f = a->strength, scaled = { f.low, 255 * f.high };
    keel_one_of_args op = { .first = draws.which };
    uint32_t next = draws.first;
    add_warp(&op, a, &next,
             (keel_warp_args){ .kind = KEEL_WARP_SHEAR, .range = { f, f, { 0, 1 } } });
    add_warp(&op, a, &next, (keel_warp_args){ .kind = KEEL_WARP_TRANSLATE, .range = { f, f } });
    add_warp(
        &op, a, &next,
        (keel_warp_args){ .kind = KEEL_WARP_ROTATE, .range = { { 360 * f.low, 360 * f.high } } });
    add_recolor(&op, a, &next,
                (keel_recolor_args){ .kind = KEEL_RECOLOR_POSTERIZE,
                                     .range = { { 1, fmax(1, trunc(8 * f.high)) } } });
    add_recolor(&op, a, &next,
                (keel_recolor_args){ .kind = KEEL_RECOLOR_SOLARIZE, .range = { scaled, scaled } });
    add_recolor(&op, a, &next, (keel_recolor_args){ .kind = KEEL_RECOLOR_STRETCH });
    add(&op, (keel_one_of_choice){ &keel_op_equalize,
                                   .args.equalize = { .bins = 256, .values = a->values } });
    if (all) {
        add_recolor(&op, a, &next,
                    (keel_recolor_args){ .kind = KEEL_RECOLOR_BRIGHTNESS, .range = { f } });
        add_recolor(&op, a, &next,
                    (keel_recolor_args){ .kind = KEEL_RECOLOR_FADE, .range = { f } });
        add_recolor(&op, a, &next,
                    (keel_recolor_args){ .kind = KEEL_RECOLOR_CONTRAST,
                                         .range = { { 1 - f.low, 1 + f.high } } });
        add(&op, (keel_one_of_choice){ &keel_op_smooth, .args.smooth = { .sharpens = true,
                                                                         .size = { 3, 3 },
                                                                         .range = { f },
                                                                         .first = next,
                                                                         .values = a->values } });
    }
    op.n += may_stay; /* its op is NULL */
    op.which.high = op.n;
    return keel_emit_on(e, &keel_op_one_of, &op, &in, 1, out);
}
