/* Reductions over neighbouring dims: a row is [outer, n, inner], and goes to [outer, inner]. Sums
 * of STRETCH vectors are made in float32, and those are added in double precision, so that a sum of
 * millions is as good as one of 64.
 *
 * Where inner is 1 the lanes share a sum; else each lane has one. The order of a sum is a matter of
 * the shape alone. The smallest is found as the largest of negated numbers. */
#ifndef VALUE
#include "ops/args.h"
#include "ops/x86/_double.h"

enum { STRETCH = 64 };

typedef struct way {
    bool known; /* false: dims between those that are reduced stay */
    bool picks; /* the largest or the smallest */
    vf sign;    /* -1: the smallest */
    double share;
    int64_t outer, n, inner;
} way;

static way way_of(const keel_node *node)
{
    const keel_reduce_args *a = node->args;
    const keel_shape *in = &node->in[0].shape;
    way w = { .picks = a->to == KEEL_REDUCE_MAX || a->to == KEEL_REDUCE_MIN,
              .sign = vf_set(a->to == KEEL_REDUCE_MIN ? -1 : 1),
              .outer = 1,
              .n = 1,
              .inner = 1 };
    int d = in->rank - 1;
    for (; d >= 0 && (!a->over[d] || in->dim[d] == 1); d--) w.inner *= in->dim[d];
    for (; d >= 0 && (a->over[d] || in->dim[d] == 1); d--) w.n *= in->dim[d];
    for (; d >= 0 && (!a->over[d] || in->dim[d] == 1); d--) w.outer *= in->dim[d];
    w.known = d < 0;
    w.share = a->to == KEEL_REDUCE_MEAN ? (double)w.n : 1;
    return w;
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    return way_of(p->node).known ? KEEL_OK : KEEL_EUNSUP;
}

/* The larger of two; NaN stays. */
static inline vf larger(vf best, vf x)
{
    return vf_choose(vf_beats(x, best), x, best);
}

static float largest_lane(vf x)
{
    float lane[LANES], best;
    vf_store(lane, x);
    best = lane[0];
    for (int i = 1; i < LANES; i++)
        if (isnan(lane[i]) || lane[i] > best) best = lane[i];
    return best;
}

/* A sum in double precision of vectors of float32. */
typedef struct wide {
    vd low, high;
} wide;

static inline void widen(wide *all, vf sum)
{
    all->low += vd_low(sum);
    all->high += vd_high(sum);
}

#define VALUE_FILE "ops/x86/reduce.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(reduce, prepare);
#else
/* ---- inner 1: n neighbours ------------------------------------------------------------------- */

static vf VALUE_(sum_line)(const way *w, const VALUE *x)
{
    wide all = { vd_zero(), vd_zero() };
    for (int64_t h = 0; h < w->n; h += STRETCH * LANES) {
        const int64_t end = w->n - h < STRETCH * LANES ? w->n - h : STRETCH * LANES;
        vf sum = vf_zero();
        VECTOR_EACH(i, end, m, sum = vf_add(sum, vx_load_some(m, x + h + i)));
        widen(&all, sum);
    }
    return vf_set((float)(vd_sum(all.low + all.high) / w->share));
}

static vf VALUE_(pick_line)(const way *w, const VALUE *x)
{
    vf best = vf_set(-INFINITY);
    VECTOR_EACH(i, w->n, m, {
        const vf v = vf_mul(vx_load_some(m, x + i), w->sign);
        best = larger(best, vf_choose(m, v, vf_set(-INFINITY)));
    });
    return vf_mul(vf_set(largest_lane(best)), w->sign);
}

/* What of the gradient each element gets that equals y: elements of the same size share. */
static vf VALUE_(share_line)(const way *w, const VALUE *x, vf y, vf dy)
{
    vf count = vf_zero();
    VECTOR_EACH(i, w->n, m, {
        const vf one = vf_choose(vf_equal(vx_load_some(m, x + i), y), vf_set(1), vf_zero());
        count = vf_add(count, vf_choose(m, one, vf_zero()));
    });
    return vf_div(dy, vf_set(vf_sum(count)));
}

static void VALUE_(back_line)(const way *w, const VALUE *x, const VALUE *y, const VALUE *dy,
                              VALUE *dx, bool adds)
{
    const vm one = vm_first(1);
    const vf all = vf_set(vf_sum(vx_load_some(one, dy)));
    const vf at = w->picks ? vf_set(vf_sum(vx_load_some(one, y))) : vf_zero();
    const vf share =
        w->picks ? VALUE_(share_line)(w, x, at, all) : vf_div(all, vf_set((float)w->share));
    VECTOR_EACH(i, w->n, m, {
        vf g = share;
        if (w->picks) g = vf_choose(vf_equal(vx_load_some(m, x + i), at), g, vf_zero());
        if (adds) g = vf_add(vx_load_some(m, dx + i), g);
        vx_store_some(m, dx + i, g);
    });
}

/* ---- inner above 1: some lanes of n lines ---------------------------------------------------- */

static vf VALUE_(sum_column)(const way *w, const VALUE *x, vm m)
{
    wide all = { vd_zero(), vd_zero() };
    for (int64_t h = 0; h < w->n; h += STRETCH) {
        const int64_t end = w->n - h < STRETCH ? w->n : h + STRETCH;
        vf sum = vf_zero();
        for (int64_t i = h; i < end; i++) sum = vf_add(sum, vx_load_some(m, x + i * w->inner));
        widen(&all, sum);
    }
    return vf_of_doubles(all.low / w->share, all.high / w->share);
}

static vf VALUE_(pick_column)(const way *w, const VALUE *x, vm m)
{
    vf best = vf_set(-INFINITY);
    for (int64_t i = 0; i < w->n; i++)
        best = larger(best, vf_mul(vx_load_some(m, x + i * w->inner), w->sign));
    return vf_mul(best, w->sign);
}

static void VALUE_(back_column)(const way *w, const VALUE *x, vf y, vf dy, VALUE *dx, vm m,
                                bool adds)
{
    vf count = vf_zero();
    for (int64_t i = 0; i < w->n; i++) {
        const vm same = vf_equal(vx_load_some(m, x + i * w->inner), y);
        count = vf_add(count, vf_choose(same, vf_set(1), vf_zero()));
    }
    const vf share = vf_div(dy, count);
    for (int64_t i = 0; i < w->n; i++) {
        const vm same = vf_equal(vx_load_some(m, x + i * w->inner), y);
        vf g = vf_choose(same, share, vf_zero());
        if (adds) g = vf_add(vx_load_some(m, dx + i * w->inner), g);
        vx_store_some(m, dx + i * w->inner, g);
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

static void VALUE_(forward)(const keel_call *c)
{
    const way w = way_of(c->node);
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    for (int64_t o = 0; o < c->rows * w.outer; o++, x += w.n * w.inner, y += w.inner)
        if (w.inner == 1)
            vx_store_some(vm_first(1), y,
                          w.picks ? VALUE_(pick_line)(&w, x) : VALUE_(sum_line)(&w, x));
        else
            VECTOR_EACH(k, w.inner, m, {
                vx_store_some(m, y + k,
                              w.picks ? VALUE_(pick_column)(&w, x + k, m)
                                      : VALUE_(sum_column)(&w, x + k, m));
            });
}

/* Lines in the order of memory: every one gets the same. */
static void VALUE_(back_lines)(const way *w, const VALUE *dy, VALUE *dx, bool adds)
{
    const vf share = vf_set((float)w->share);
    for (int64_t i = 0; i < w->n; i++, dx += w->inner)
        VECTOR_EACH(k, w->inner, m, {
            vf g = vf_div(vx_load_some(m, dy + k), share);
            if (adds) g = vf_add(vx_load_some(m, dx + k), g);
            vx_store_some(m, dx + k, g);
        });
}

static void VALUE_(backward)(const keel_call *c)
{
    const way w = way_of(c->node);
    const int64_t piece = w.n * w.inner;
    const bool adds = c->in_adds[0];
    const VALUE *x = c->in[0], *y = c->out[0], *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    if (!dx) return;
    for (int64_t o = 0; o < c->rows * w.outer;
         o++, x += piece, dx += piece, y += w.inner, dy += w.inner)
        if (w.inner == 1)
            VALUE_(back_line)(&w, x, y, dy, dx, adds);
        else if (!w.picks)
            VALUE_(back_lines)(&w, dy, dx, adds);
        else
            VECTOR_EACH(k, w.inner, m,
                        VALUE_(back_column)(&w, x + k, vx_load_some(m, y + k),
                                            vx_load_some(m, dy + k), dx + k, m, adds));
}
#endif
