/* Losses that are the mean over the last axis of a function of one prediction and its target, as in
 * losses/binary_crossentropy.c and losses/mean_squared_error.c. */
#ifndef KEEL_TRAIN_X86_EACH_LOSS_H
#define KEEL_TRAIN_X86_EACH_LOSS_H
#include "train/x86/_crossentropy.h"

/* at(): the losses of a vector of predictions, and their slopes. */
TERM void mean_of(const line *l, bool along, halves (*at)(const void *, vf, vf, vf *))
{
    const vf scale = vf_div(l->scale, vf_set((float)l->n)), one = vf_set(1);
    halves sum = { 0 };
    for (int64_t k = 0; k < l->steps; k++) {
        const vm m = line_mask(l, along, k);
        vf slope;
        halves v = at(l->args, vf_load_some(m, l->p + k * l->step),
                      vf_load_some(m, l->t + k * l->step), &slope);
        if (along && k == l->steps - 1) { /* 0 in lanes that do not exist */
            const vf counts = vf_choose(m, one, vf_zero());
            v.low *= vd_low(counts);
            v.high *= vd_high(counts);
        }
        sum.low += v.low;
        sum.high += v.high;
        if (l->grad) put_gradient(l, m, k, vf_mul(scale, slope));
    }
    sum = total(sum, along);
    const vd n = vd_set((double)l->n);
    put_loss(l, along, (halves){ sum.low / n, sum.high / n });
}

TERM vf smoothed_binary(const void *args, vf t)
{
    const keel_crossentropy *a = args;
    return vf_add(vf_mul(t, vf_set((float)(1 - a->label_smoothing))),
                  vf_set((float)(a->label_smoothing / 2)));
}

/* max(z, 0) - z t + log(1 + exp(-|z|)) */
TERM halves binary_at_logit(const void *args, vf z, vf target, vf *slope)
{
    const vf zero = vf_zero(), one = vf_set(1), t = smoothed_binary(args, target);
    const vf e = exponential(less_size(z));
    const vf part = vf_ratio(vf_choose(vf_greater(zero, z), e, one), vf_add(one, e));
    const vf rest = vf_sub(vf_max(zero, z), vf_mul(z, t));
    *slope = vf_sub(part, t);
    return (halves){ vd_low(rest) + vd_log1p(vd_low(e)), vd_high(rest) + vd_log1p(vd_high(e)) };
}

TERM halves binary_at_probability(const void *args, vf p, vf target, vf *slope)
{
    const vf zero = vf_zero(), one = vf_set(1), t = smoothed_binary(args, target);
    const vf q = clipped(p), rest = vf_sub(one, q), other = vf_sub(one, t);
    const halves a = logarithm(halves_of(q)), b = logarithm(halves_of(rest));
    const vf g = vf_sub(vf_div(other, rest), vf_div(t, q));
    *slope = vf_choose(vf_equal(p, q), g, zero);
    return (halves){ -(vd_low(t) * a.low + vd_low(other) * b.low),
                     -(vd_high(t) * a.high + vd_high(other) * b.high) };
}

TERM halves squared_at(const void *args, vf p, vf t, vf *slope)
{
    const vf d = vf_sub(p, t);
    (void)args;
    *slope = vf_add(d, d);
    return halves_of(vf_mul(d, d));
}

#define MEAN_TERM(name, at)                                                                        \
    TERM void name(const line *l, bool along)                                                      \
    {                                                                                              \
        mean_of(l, along, at);                                                                     \
    }                                                                                              \
    TERM_OF(run_##name, name)

MEAN_TERM(binary_of_logits, binary_at_logit)
MEAN_TERM(binary_of_probabilities, binary_at_probability)
MEAN_TERM(squared, squared_at)

#endif
