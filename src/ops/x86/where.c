/* Choice between two values, 8 or 16 elements at a time: a row of the output is cut into runs,
 * along which the condition and each of the values either goes on to its next element or repeats
 * one. The gradient of what repeats is summed in double, in the order of the row. */
#ifndef VALUE
#include "ops/args.h"
#include "ops/infer.h"
#include "ops/x86/_double.h"

enum { CONDITION, FIRST, SECOND, OPERANDS };

typedef struct way {
    int in[OPERANDS]; /* which input it is; -1: a constant */
    float constant[OPERANDS];
    bool goes[OPERANDS];
    int64_t length; /* of a run */
} way;

static bool goes_along(const keel_node *n, int k, int d)
{
    return k >= 0 && n->in[k].shape.dim[d] != 1;
}

static way way_of(const keel_node *n)
{
    const keel_where_args *a = n->args;
    const keel_shape *out = &n->out[0].shape;
    way w = { .in = { 0, a->fixed[0] ? -1 : 1,
                      a->fixed[1]   ? -1
                      : a->fixed[0] ? 1
                                    : 2 },
              .constant = { 0, (float)a->constant[0], (float)a->constant[1] },
              .length = 1 };
    for (int d = out->rank - 1; d >= 0; d--) {
        bool goes[OPERANDS], same = true;
        if (out->dim[d] == 1) continue;
        for (int o = 0; o < OPERANDS; o++) {
            goes[o] = goes_along(n, w.in[o], d);
            same = same && goes[o] == w.goes[o];
        }
        if (w.length > 1 && !same) break;
        memcpy(w.goes, goes, sizeof goes);
        w.length *= out->dim[d];
    }
    return w;
}

/* The element of input k for element i of a row of the output. */
static int64_t place_of(const keel_node *n, int k, int64_t i)
{
    const keel_spec *in = &n->in[k], *out = &n->out[0];
    return keel_row_count(in) == keel_row_count(out)
               ? i
               : keel_spread_index(&out->shape, &in->shape, i);
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass == KEEL_BACKWARD) p->scratch = p->node->scratch;
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/where.c"
#include "ops/x86/_values.h"

KEEL_USES_OP(where);
VECTOR_BOTH(where, prepare);
#else
typedef struct VALUE_(operand) {
    const VALUE *at; /* the run's elements; NULL: all are `one` */
    vf one;
} VALUE_(operand);

static VALUE_(operand) VALUE_(find)(const keel_call *c, const way *w, int o, int64_t row, int64_t i)
{
    const keel_node *n = c->node;
    const int k = w->in[o];
    if (k < 0) return (VALUE_(operand)){ NULL, vf_set(w->constant[o]) };
    const VALUE *x = (const VALUE *)c->in[k] + row * keel_row_count(&n->in[k]) + place_of(n, k, i);
    if (w->goes[o]) return (VALUE_(operand)){ .at = x };
    return (VALUE_(operand)){ NULL, vf_set(vf_sum(vx_load_some(vm_first(1), x))) };
}

static inline vf VALUE_(take)(const VALUE_(operand) * x, vm m, int64_t i)
{
    return x->at ? vx_load_some(m, x->at + i) : x->one;
}

static void VALUE_(forward)(const keel_call *c)
{
    const way w = way_of(c->node);
    const int64_t count = keel_row_count(&c->node->out[0]);
    const vf half = vf_set(0.5f);
    VALUE *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t i = 0; i < count; i += w.length, y += w.length) {
            const VALUE_(operand) if_ = VALUE_(find)(c, &w, CONDITION, row, i);
            const VALUE_(operand) a = VALUE_(find)(c, &w, FIRST, row, i);
            const VALUE_(operand) b = VALUE_(find)(c, &w, SECOND, row, i);
            VECTOR_EACH(e, w.length, m, {
                const vm first = vf_greater(VALUE_(take)(&if_, m, e), half);
                const vf v = vf_choose(first, VALUE_(take)(&a, m, e), VALUE_(take)(&b, m, e));
                vx_store_some(m, y + e, v);
            });
        }
}

/* What a run gives operand o: to dx where it goes along with a whole row of its own, else to sums
 * of its elements. */
static void VALUE_(share)(const keel_call *c, const way *w, int o, int64_t row, int64_t i,
                          VALUE *dx, double *sum)
{
    const keel_node *n = c->node;
    const int64_t at = place_of(n, w->in[o], i);
    const VALUE *dy = (const VALUE *)c->out_grad[0] + row * keel_row_count(&n->out[0]) + i;
    const VALUE_(operand) if_ = VALUE_(find)(c, w, CONDITION, row, i);
    const vf half = vf_set(0.5f), zero = vf_zero();
    VECTOR_EACH(e, w->length, m, {
        const vm first = vf_greater(VALUE_(take)(&if_, m, e), half);
        const vf g = vx_load_some(m, dy + e);
        vf v = o == FIRST ? vf_choose(first, g, zero) : vf_choose(first, zero, g);
        if (!sum) {
            if (c->in_adds[w->in[o]]) v = vf_add(v, vx_load_some(m, dx + at + e));
            vx_store_some(m, dx + at + e, v);
        } else {
            float some[LANES];
            const int64_t lanes = w->length - e < LANES ? w->length - e : LANES;
            vf_store(some, v);
            for (int64_t k = 0; k < lanes; k++)
                sum[w->goes[o] ? at + e + k : at] += (double)some[k];
        }
    });
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const way w = way_of(n);
    const int64_t count = keel_row_count(&n->out[0]);
    VALUE *of_condition = c->in_grad[0];
    for (int o = FIRST; o < OPERANDS; o++) {
        const int k = w.in[o];
        VALUE *dx = k < 0 ? NULL : c->in_grad[k];
        const int64_t own = k < 0 ? 0 : keel_row_count(&n->in[k]);
        double *sum = own == count ? NULL : c->scratch;
        for (int64_t row = 0; dx && row < c->rows; row++, dx += own) {
            if (sum) memset(sum, 0, (size_t)own * sizeof *sum);
            for (int64_t i = 0; i < count; i += w.length) VALUE_(share)(c, &w, o, row, i, dx, sum);
            for (int64_t i = 0; sum && i < own; i++) {
                const vm one = vm_first(1);
                vf v = vf_set((float)sum[i]);
                if (c->in_adds[k]) {
                    const vf before = vx_load_some(one, dx + i);
                    v = vf_set((float)((double)vf_sum(before) + sum[i]));
                }
                vx_store_some(one, dx + i, v);
            }
        }
    }
    if (of_condition && !c->in_adds[0])
        memset(of_condition, 0,
               (size_t)(c->rows * keel_row_count(&n->in[0])) * sizeof *of_condition);
}
#endif
