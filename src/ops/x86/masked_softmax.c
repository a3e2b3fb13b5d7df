/* Softmax over what is seen, 8 or 16 elements at a time; exponentials wait for their sum in
 * scratch, in float32. */
#ifndef VALUE
#include "ops/args.h"
#include "ops/infer.h"
#include "ops/x86/_pointwise.h"
#include "ops/x86/_vector.h"
#include <math.h>

static int64_t last_of(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    p->scratch = last_of(p->node) * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* Of line o of a row: the elements [first, end) that the arguments let it see. */
static void range_of(const keel_node *n, int64_t o, int64_t *first, int64_t *end)
{
    const keel_masked_softmax_args *a = n->args;
    const int64_t t = o % n->in[0].shape.dim[n->in[0].shape.rank - 2], s = last_of(n);
    const int64_t low = a->window && t - a->window + 1 > 0 ? t - a->window + 1 : 0;
    int64_t high = a->causal && t + 1 < s ? t + 1 : s;
    if (a->window && !a->causal && t + a->window < high) high = t + a->window;
    *first = low < high ? low : high;
    *end = high;
}

#define VALUE_FILE "ops/x86/masked_softmax.c"
#include "ops/x86/_values.h"

const keel_kernel VECTOR_KERNEL(masked_softmax) = VECTOR_BOTH(masked_softmax, prepare);
#else
/* One line: the elements [first, end), where the mask, if there is one, is above one half; `each`:
 * it has a number for each of them, else one for all. False: none is seen. */
static bool VALUE_(line)(VALUE *y, const VALUE *x, const VALUE *mask, bool each, int64_t first,
                         int64_t end, int64_t s, float *e)
{
    const vf half = vf_set(0.5f), none = vf_set(-INFINITY);
    const int64_t n = end - first;
    const bool by_mask = mask && each;
    vf most = none, sum = vf_zero();
    bool any = false;
    if (n <= 0) return false;
    x += first;
    if (by_mask) mask += first;
    if (mask && !each) {
        const vm one = vm_first(1);
        if (!vm_any(vm_and(one, vf_greater(vx_load_some(one, mask), half)))) return false;
    }
    VECTOR_EACH(i, n, m, {
        vm seen = m;
        if (by_mask) seen = vm_and(m, vf_greater(vx_load_some(m, mask + i), half));
        const vf v = vf_choose(seen, vx_load_some(m, x + i), none);
        any = any || vm_any(seen);
        vf_store_some(m, e + i, v);
        most = vf_max(most, v);
    });
    if (!any) return false;
    const vf shift = vf_set(vf_largest(most));
    VECTOR_EACH(i, n, m, {
        const vf v = exponential(vf_sub(vf_load_some(m, e + i), shift));
        const vf added = vf_choose(m, v, vf_zero());
        sum = vf_add(sum, added);
        vf_store_some(m, e + i, v);
    });
    const vf share = vf_set(1 / vf_sum(sum));
    VECTOR_EACH(i, first, m, vx_store_same(m, y + i, vf_zero()));
    VECTOR_EACH(i, n, m, vx_store_some(m, y + first + i, vf_mul(vf_load_some(m, e + i), share)));
    VECTOR_EACH(i, s - end, m, vx_store_same(m, y + end + i, vf_zero()));
    return true;
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const keel_masked_softmax_args *a = n->args;
    const int64_t s = last_of(n), lines = keel_row_count(&n->in[0]) / s;
    const keel_shape *shape = n->n_in > 1 ? &n->in[1].shape : NULL;
    const bool each = shape && shape->dim[shape->rank - 1] == s && s > 1;
    uint8_t *const blind = n->n_saved ? c->saved[0] : NULL;
    for (int64_t o = 0; o < c->rows * lines; o++) {
        const int64_t row = o / lines, line = o % lines;
        const VALUE *mask = NULL;
        VALUE *y = (VALUE *)c->out[0] + o * s;
        int64_t first, end;
        range_of(n, line, &first, &end);
        if (shape)
            mask = (const VALUE *)c->in[1] + row * keel_shape_count(shape) +
                   keel_spread_index(&n->in[0].shape, shape, line * s);
        const bool seen =
            VALUE_(line)(y, (const VALUE *)c->in[0] + o * s, mask, each, first, end, s, c->scratch);
        if (blind) blind[o] = !seen;
        const vf share = vf_set(a->uniform ? 1 / (float)s : 0);
        if (!seen) VECTOR_EACH(i, s, m, vx_store_some(m, y + i, share));
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const int64_t s = last_of(n), lines = c->rows * (keel_row_count(&n->in[0]) / s);
    const uint8_t *const blind = c->saved[0];
    for (int64_t o = 0; c->in_grad[0] && o < lines; o++) {
        const VALUE *y = (const VALUE *)c->out[0] + o * s,
                    *dy = (const VALUE *)c->out_grad[0] + o * s;
        VALUE *dx = (VALUE *)c->in_grad[0] + o * s;
        const vf by = vf_set(blind[o] ? 0 : 1);
        vf sum = vf_zero();
        VECTOR_EACH(i, s, m, sum = vf_fma(vx_load_some(m, y + i), vx_load_some(m, dy + i), sum));
        const vf mean = vf_set(vf_sum(sum));
        VECTOR_EACH(i, s, m, {
            const vf v = vf_mul(by, vx_load_some(m, y + i));
            vf g = vf_mul(v, vf_sub(vx_load_some(m, dy + i), mean));
            if (c->in_adds[0]) g = vf_add(g, vx_load_some(m, dx + i));
            vx_store_some(m, dx + i, g);
        });
    }
    if (n->n_in < 2 || !c->in_grad[1] || c->in_adds[1]) return;
    memset(c->in_grad[1], 0, (size_t)(c->rows * keel_row_count(&n->in[1])) * sizeof(VALUE));
}
#endif
