/* Softmax over what is seen, 8 or 16 elements at a time; exponentials wait for their sum in
 * scratch, in float32. */
#ifndef VALUE
#include "ops/dot_product_attention.h"
#include "ops/infer.h"
#include "ops/x86/_pointwise.h"
#include "ops/x86/_vector.h"
#include <math.h>

enum { MASKS_MAX = 8 };

static int64_t last_of(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->node->n_in > 1 + MASKS_MAX) return KEEL_EUNSUP;
    p->scratch = last_of(p->node) * (int64_t)sizeof(float);
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/masked_softmax.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(masked_softmax, prepare);
#else
/* The masks of one line: those with a number for each element, and whether all others let it see.
 */
typedef struct VALUE_(masks) {
    int n;
    const VALUE *each[MASKS_MAX];
    bool open;
} VALUE_(masks);

static VALUE_(masks) VALUE_(masks_of)(const keel_call *c, int64_t row, int64_t line)
{
    const keel_node *n = c->node;
    const int64_t s = last_of(n);
    const vm one = vm_first(1);
    VALUE_(masks) out = { .open = true };
    for (int k = 1; k < n->n_in; k++) {
        const keel_shape *shape = &n->in[k].shape;
        const VALUE *mask = (const VALUE *)c->in[k] + row * keel_shape_count(shape) +
                            keel_spread_index(&n->in[0].shape, shape, line * s);
        if (shape->dim[shape->rank - 1] > 1)
            out.each[out.n++] = mask;
        else if (!vm_any(vm_and(one, vf_greater(vx_load_some(one, mask), vf_set(0.5f)))))
            out.open = false;
    }
    return out;
}

/* The elements [first, end) of a line, as far as masks let see them. False: none is seen. */
static bool VALUE_(run_line)(VALUE *y, const VALUE *x, const VALUE_(masks) * masks, int64_t first,
                             int64_t end, int64_t s, float *e)
{
    const vf half = vf_set(0.5f), none = vf_set(-INFINITY);
    const int64_t n = end - first;
    vf most = none, sum = vf_zero();
    bool any = false;
    if (!masks->open) return false;
    VECTOR_EACH(i, n, m, {
        vm seen = m;
        for (int k = 0; k < masks->n; k++)
            seen = vm_and(seen, vf_greater(vx_load_some(m, masks->each[k] + first + i), half));
        const vf v = vf_choose(seen, vx_load_some(m, x + first + i), none);
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
    const vf share = vf_set(a->uniform ? 1 / (float)s : 0);
    uint8_t *const blind = n->n_saved ? c->saved[0] : NULL;
    for (int64_t o = 0; o < c->rows * lines; o++) {
        const VALUE_(masks) masks = VALUE_(masks_of)(c, o / lines, o % lines);
        VALUE *y = (VALUE *)c->out[0] + o * s;
        int64_t first, end;
        keel_seen_range(a, o % lines % n->in[0].shape.dim[n->in[0].shape.rank - 2], s, &first,
                        &end);
        const bool seen =
            VALUE_(run_line)(y, (const VALUE *)c->in[0] + o * s, &masks, first, end, s, c->scratch);
        if (blind) blind[o] = !seen;
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
    for (int k = 1; k < n->n_in; k++)
        if (c->in_grad[k] && !c->in_adds[k])
            memset(c->in_grad[k], 0, (size_t)(c->rows * keel_row_count(&n->in[k])) * sizeof(VALUE));
}
#endif
