/* Cross-entropies over classes, as in losses/sparse_categorical_crossentropy.c and
 * losses/categorical_crossentropy.c. */
#ifndef KEEL_TRAIN_X86_CROSSENTROPY_H
#define KEEL_TRAIN_X86_CROSSENTROPY_H
#include "losses/crossentropy.h"
#include "train/x86/_loss.h"

static const float LOW = (float)KEEL_EPSILON, HIGH = (float)(1 - KEEL_EPSILON);

TERM vf clipped(vf x)
{
    return vf_min(vf_set(HIGH), vf_max(vf_set(LOW), x));
}

TERM halves logarithm(halves x)
{
    return (halves){ vd_log(x.low), vd_log(x.high) };
}

/* The largest logit, which is subtracted from all. */
TERM vf largest_of(const line *l, bool along)
{
    const vf none = vf_set(-INFINITY);
    vf top = none;
    for (int64_t k = 0; k < l->steps; k++) {
        const vm m = line_mask(l, along, k);
        top = vf_max(top, vf_choose(m, vf_load_some(m, l->p + k * l->step), none));
    }
    return along ? vf_set(vf_largest(top)) : top;
}

TERM void sparse_of_logits(const line *l, bool along)
{
    const vf top = largest_of(l, along), zero = vf_zero();
    vf own = zero;
    halves sum = { 0 };
    vi at = l->first;
    for (int64_t k = 0; k < l->steps; k++, at = vi_add(at, l->next)) {
        const vm m = line_mask(l, along, k);
        const vf d = vf_sub(vf_load_some(m, l->p + k * l->step), top);
        const vf e = vf_choose(m, exponential(d), zero);
        add_to(&sum, e);
        own = vf_choose(vm_and(m, vi_equal(at, l->label)), d, own);
        if (l->grad) vf_store_some(m, l->grad + k * l->step, e);
    }
    sum = total(sum, along);
    const halves of_sum = logarithm(sum), of_label = total(halves_of(own), along);
    put_loss(l, along, (halves){ of_sum.low - of_label.low, of_sum.high - of_label.high });
    if (!l->grad) return;
    const vf factor = vf_div(l->scale, vf_of(sum));
    at = l->first;
    for (int64_t k = 0; k < l->steps; k++, at = vi_add(at, l->next)) {
        const vm m = line_mask(l, along, k);
        const vf g = vf_mul(vf_load_some(m, l->grad + k * l->step), factor);
        put_gradient(l, m, k, vf_choose(vi_equal(at, l->label), vf_sub(g, l->scale), g));
    }
}

TERM void sparse_of_probabilities(const line *l, bool along)
{
    const vf zero = vf_zero();
    vf own = zero;
    halves sum = { 0 };
    vi at = l->first;
    for (int64_t k = 0; k < l->steps; k++, at = vi_add(at, l->next)) {
        const vm m = line_mask(l, along, k);
        const vf x = vf_load_some(m, l->p + k * l->step);
        add_to(&sum, vf_choose(m, clipped(x), zero));
        own = vf_choose(vm_and(m, vi_equal(at, l->label)), x, own);
    }
    sum = total(sum, along);
    const halves of_label = halves_of(clipped(vf_of(total(halves_of(own), along))));
    put_loss(l, along, logarithm((halves){ sum.low / of_label.low, sum.high / of_label.high }));
    if (!l->grad) return;
    const vf factor = vf_div(l->scale, vf_of(sum));
    at = l->first;
    for (int64_t k = 0; k < l->steps; k++, at = vi_add(at, l->next)) {
        const vm m = line_mask(l, along, k);
        const vf x = vf_load_some(m, l->p + k * l->step);
        const vf less = vf_sub(factor, vf_div(l->scale, x));
        const vf g = vf_choose(vi_equal(at, l->label), less, factor);
        put_gradient(l, m, k, vf_choose(vf_equal(x, clipped(x)), g, zero));
    }
}

/* The targets at step k, smoothed; 0 in lanes that do not exist. */
TERM vf smoothed(const line *l, vm m, int64_t k)
{
    const keel_crossentropy *a = l->args;
    const vf keep = vf_set((float)(1 - a->label_smoothing));
    const vf share = vf_set((float)(a->label_smoothing / (double)l->n));
    const vf t = vf_load_some(m, l->t + k * l->step);
    return vf_choose(m, vf_add(vf_mul(t, keep), share), vf_zero());
}

TERM void categorical_of_logits(const line *l, bool along)
{
    const vf top = largest_of(l, along), zero = vf_zero();
    halves sum = { 0 }, targets = { 0 }, part = { 0 };
    for (int64_t k = 0; k < l->steps; k++) {
        const vm m = line_mask(l, along, k);
        const vf t = smoothed(l, m, k);
        const vf d = vf_choose(m, vf_sub(vf_load_some(m, l->p + k * l->step), top), zero);
        const vf e = vf_choose(m, exponential(d), zero);
        add_to(&sum, e);
        add_to(&targets, t);
        part.low += vd_low(t) * vd_low(d);
        part.high += vd_high(t) * vd_high(d);
        if (l->grad) vf_store_some(m, l->grad + k * l->step, e);
    }
    sum = total(sum, along), targets = total(targets, along), part = total(part, along);
    const halves of_sum = logarithm(sum);
    put_loss(
        l, along,
        (halves){ targets.low * of_sum.low - part.low, targets.high * of_sum.high - part.high });
    if (!l->grad) return;
    const vf share = vf_div(vf_set(1), vf_of(sum));
    for (int64_t k = 0; k < l->steps; k++) {
        const vm m = line_mask(l, along, k);
        const vf e = vf_load_some(m, l->grad + k * l->step);
        put_gradient(l, m, k, vf_mul(l->scale, vf_sub(vf_mul(e, share), smoothed(l, m, k))));
    }
}

/* q = p / sum(p), then clipped; `inward` is the sum of the slopes by q times q. */
TERM void categorical_of_probabilities(const line *l, bool along)
{
    const vf zero = vf_zero();
    halves sum = { 0 }, loss = { 0 }, inward = { 0 };
    for (int64_t k = 0; k < l->steps; k++)
        add_to(&sum, vf_load_some(line_mask(l, along, k), l->p + k * l->step));
    sum = total(sum, along);
    const vf share = vf_div(vf_set(1), vf_of(sum));
    for (int64_t k = 0; k < l->steps; k++) {
        const vm m = line_mask(l, along, k);
        const vf t = smoothed(l, m, k);
        const vf q = vf_div(vf_load_some(m, l->p + k * l->step), vf_of(sum)), cut = clipped(q);
        const vf down = vf_sub(zero, vf_div(t, cut));
        const vf slope = vf_choose(vf_equal(q, cut), down, zero);
        const halves of_cut = logarithm(halves_of(cut));
        loss.low -= vd_low(t) * of_cut.low;
        loss.high -= vd_high(t) * of_cut.high;
        add_to(&inward, vf_mul(slope, q));
        if (l->grad) vf_store_some(m, l->grad + k * l->step, slope);
    }
    put_loss(l, along, total(loss, along));
    if (!l->grad) return;
    const vf less = vf_of(total(inward, along)), factor = vf_mul(l->scale, share);
    for (int64_t k = 0; k < l->steps; k++) {
        const vm m = line_mask(l, along, k);
        const vf slope = vf_load_some(m, l->grad + k * l->step);
        put_gradient(l, m, k, vf_mul(factor, vf_sub(slope, less)));
    }
}

TERM_OF(run_sparse_of_logits, sparse_of_logits)
TERM_OF(run_sparse_of_probabilities, sparse_of_probabilities)
TERM_OF(run_categorical_of_logits, categorical_of_logits)
TERM_OF(run_categorical_of_probabilities, categorical_of_probabilities)

#endif
