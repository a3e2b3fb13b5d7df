/* Ops of two values element by element, 8 or 16 at a time: see ops/binary.h for what they are. One
 * operand has all elements of the output; the other one, too, or it is a constant, or it repeats
 * along neighbouring dims: it is [outer, 1, inner] beside [outer, mid, inner]. Where both repeat,
 * one is [outer, across, 1, inner] and the other [outer, 1, mid, inner]: _binary_cross.h.
 *
 * A file gives value(args, a, b) and the two gradients of a sum of dy value(a, b), names this file
 * as VALUE_FILE, and ends with VECTOR_BOTH(stem, binary_prepare); BINARY_FORWARD_ONLY, defined
 * before, leaves out the gradients. Backward goes through memory once, for both gradients. The
 * gradient of what repeats is summed over bands of lines in registers, in an order that only the
 * shape decides. */
#ifndef VALUE
#ifndef KEEL_OPS_X86_BINARY_H
#define KEEL_OPS_X86_BINARY_H
#include "ops/args.h"
#include "ops/x86/_vector.h"

enum { BINARY_BAND = 16 };

typedef struct binary_way {
    bool known;                        /* false: these kernels do not go this way */
    bool constant;                     /* the small operand is one */
    int small;                         /* the operand that repeats along mid; -1: neither does */
    int64_t outer, across, mid, inner; /* across: 0 if only one repeats */
} binary_way;

/* The product of dims of the output from *d down along which the operands go so. */
static inline int64_t binary_dims(const keel_node *n, int *d, bool first, bool second)
{
    const int64_t *a = n->in[0].shape.dim, *b = n->in[1].shape.dim, *out = n->out[0].shape.dim;
    int64_t count = 1;
    for (; *d >= 0; (*d)--) {
        if (out[*d] != 1 && ((a[*d] != 1) != first || (b[*d] != 1) != second)) break;
        count *= out[*d];
    }
    return count;
}

static inline binary_way binary_way_across(const keel_node *n)
{
    int d = n->out[0].shape.rank - 1;
    binary_way w = { .inner = binary_dims(n, &d, true, true) };
    w.small = d >= 0 && n->in[0].shape.dim[d] != 1; /* the second, if the first goes */
    w.mid = binary_dims(n, &d, w.small, !w.small);
    w.across = binary_dims(n, &d, !w.small, w.small);
    w.outer = binary_dims(n, &d, true, true);
    w.known = d < 0;
    return w;
}

static inline bool binary_is_whole(const keel_node *n, int k)
{
    return keel_row_count(&n->in[k]) == keel_row_count(&n->out[0]);
}

static inline binary_way binary_way_of(const keel_node *n)
{
    const keel_shape *out = &n->out[0].shape;
    binary_way w = { .small = -1, .outer = 1, .mid = 1, .inner = 1 };
    if (n->n_in == 1) {
        w.constant = true;
        w.small = ((const keel_binary_args *)n->args)->left ? 0 : 1;
        w.mid = keel_row_count(&n->out[0]);
        w.known = true;
        return w;
    }
    const bool whole[2] = { binary_is_whole(n, 0), binary_is_whole(n, 1) };
    if (!whole[0] && !whole[1]) return binary_way_across(n);
    if (!whole[0] || !whole[1]) w.small = whole[0];
    int d = out->rank - 1;
    const keel_shape *in = w.small < 0 ? out : &n->in[w.small].shape;
    for (; d >= 0 && (out->dim[d] == 1 || in->dim[d] != 1); d--) w.inner *= out->dim[d];
    for (; d >= 0 && in->dim[d] == 1; d--) w.mid *= out->dim[d];
    for (; d >= 0 && (out->dim[d] == 1 || in->dim[d] != 1); d--) w.outer *= out->dim[d];
    w.known = d < 0;
    return w;
}

static inline keel_status binary_prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    const binary_way w = binary_way_of(p->node);
    if (!w.known) return KEEL_EUNSUP;
    if (w.small >= 0 && !w.constant)
        p->scratch = (w.across ? w.mid : w.outer) * w.inner * (int64_t)sizeof(float);
    return KEEL_OK;
}

#endif
#else
/* y = value(args, a, b) of n neighbours; an operand that is NULL is `one` throughout. */
static inline void VALUE_(values)(const void *args, VALUE *y, const VALUE *a, const VALUE *b,
                                  vf one, int64_t n)
{
    if (a && b)
        VECTOR_EACH(i, n, m, {
            const vf v = value(args, vx_load_some(m, a + i), vx_load_some(m, b + i));
            vx_store_some(m, y + i, v);
        });
    else if (a)
        VECTOR_EACH(i, n, m, vx_store_some(m, y + i, value(args, vx_load_some(m, a + i), one)));
    else
        VECTOR_EACH(i, n, m, vx_store_some(m, y + i, value(args, one, vx_load_some(m, b + i))));
}

static inline vf VALUE_(first_of)(const VALUE *x)
{
    return vf_set(vf_sum(vx_load_some(vm_first(1), x)));
}

/* y [mid, inner] of `other` [mid, inner] beside small [inner]. */
static void VALUE_(beside)(const void *args, VALUE *y, const VALUE *other, const VALUE *small,
                           const binary_way *w)
{
    if (w->inner == 1) {
        VALUE_(values)
        (args, y, w->small ? other : NULL, w->small ? NULL : other, VALUE_(first_of)(small),
         w->mid);
        return;
    }
    for (int64_t i = 0; i < w->mid; i++, y += w->inner, other += w->inner) VALUE_(values)
    (args, y, w->small ? other : small, w->small ? small : other, vf_zero(), w->inner);
}

/* Rounded before it is added: gcc makes a multiply-add of it in whole vectors and not in a tail. */
static inline void VALUE_(put)(vm m, VALUE *dx, vf g, bool adds)
{
    vx_store_some(m, dx, adds ? vf_add(vf_rounded(g), vx_load_some(m, dx)) : g);
}

#include "ops/x86/_binary_cross.h"

static void VALUE_(forward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const VALUE *a = c->in[0], *b = n->n_in > 1 ? c->in[1] : NULL;
    VALUE *y = c->out[0];
    const binary_way w = binary_way_of(n);
    if (w.small < 0) {
        VALUE_(values)(n->args, y, a, b, vf_zero(), c->rows * keel_row_count(&n->out[0]));
        return;
    }
    if (w.constant) {
        const vf one = vf_set((float)((const keel_binary_args *)n->args)->constant);
        VALUE_(values)(n->args, y, w.small ? a : NULL, w.small ? NULL : a, one, c->rows * w.mid);
        return;
    }
    if (w.across) {
        VALUE_(forward_cross)(c, &w);
        return;
    }
    const VALUE *whole = w.small ? a : b, *small = w.small ? b : a;
    const int64_t piece = w.mid * w.inner;
    for (int64_t o = 0; o < c->rows * w.outer; o++)
        VALUE_(beside)(n->args, y + o * piece, whole + o * piece, small + o * w.inner, &w);
}

#ifndef BINARY_FORWARD_ONLY
/* Both operands have all elements. */
static void VALUE_(backward_whole)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const VALUE *a = c->in[0], *b = c->in[1], *dy = c->out_grad[0];
    VALUE *da = c->in_grad[0], *db = c->in_grad[1];
    const bool adds_a = c->in_adds[0], adds_b = c->in_adds[1];
    VECTOR_EACH(i, count, m, {
        const vf g = vx_load_some(m, dy + i);
        const vf x = vx_load_some(m, a + i);
        const vf z = vx_load_some(m, b + i);
        if (da) VALUE_(put)(m, da + i, gradient_a(g, x, z), adds_a);
        if (db) VALUE_(put)(m, db + i, gradient_b(g, x, z), adds_b);
    });
}

static void VALUE_(backward_constant)(const keel_call *c, const binary_way *w)
{
    const vf one = vf_set((float)((const keel_binary_args *)c->node->args)->constant);
    const VALUE *x = c->in[0], *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    if (!dx) return;
    VECTOR_EACH(i, c->rows * w->mid, m, {
        const vf g = vx_load_some(m, dy + i);
        const vf at = vx_load_some(m, x + i);
        VALUE_(put)
        (m, dx + i, w->small ? gradient_a(g, at, one) : gradient_b(g, one, at), c->in_adds[0]);
    });
}

/* What a band of lines reads and writes; `whole` and its gradient `to` have all elements. */
typedef struct VALUE_(band) {
    const VALUE *dy, *whole, *small;
    VALUE *to;         /* NULL: not wanted */
    bool adds, second; /* to is added to; the operand that repeats is the second */
} VALUE_(band);

/* One vector of the band from element i on, beside `one`: what goes into the sum. */
static inline vf VALUE_(step)(const VALUE_(band) * b, int64_t i, vf one, vm m)
{
    const vf g = vx_load_some(m, b->dy + i), x = vx_load_some(m, b->whole + i);
    if (b->to) VALUE_(put)
    (m, b->to + i, b->second ? gradient_a(g, x, one) : gradient_b(g, one, x), b->adds);
    return b->second ? gradient_b(g, x, one) : gradient_a(g, one, x);
}

/* Adds to sums [inner] what `lines` lines of a small operand of many elements give. */
static void VALUE_(sum_lines)(const VALUE_(band) * b, float *sums, int64_t lines, int64_t inner)
{
    for (int64_t h = 0; h < lines; h += BINARY_BAND)
        VECTOR_EACH(k, inner, m, {
            const vf one = vx_load_some(m, b->small + k);
            vf sum = vf_zero();
            for (int64_t i = h; i < lines && i < h + BINARY_BAND; i++)
                sum = vf_add(sum, VALUE_(step)(b, i * inner + k, one, m));
            vf_store_some(m, sums + k, vf_add(sum, vf_load_some(m, sums + k)));
        });
}

/* The same where one number stands beside n neighbours. Lanes that do not exist are left out: a
 * gradient need not be 0 there. */
static float VALUE_(sum_line)(const VALUE_(band) * b, int64_t n)
{
    const vf one = VALUE_(first_of)(b->small);
    vf all = vf_zero();
    for (int64_t h = 0; h < n; h += BINARY_BAND * LANES) {
        const int64_t end = n - h < BINARY_BAND * LANES ? n - h : BINARY_BAND * LANES;
        vf sum = vf_zero();
        VECTOR_EACH(i, end, m, {
            const vf g = VALUE_(step)(b, h + i, one, m);
            float some[LANES] = { 0 };
            if (i + LANES <= end) {
                sum = vf_add(sum, g);
            } else {
                vf_store_some(m, some, g);
                sum = vf_add(sum, vf_load(some));
            }
        });
        all = vf_add(all, sum);
    }
    return vf_sum(all);
}

static void VALUE_(backward_spread)(const keel_call *c, const binary_way *w)
{
    const int64_t own = w->outer * w->inner, piece = w->mid * w->inner;
    VALUE *ds = c->in_grad[w->small];
    VALUE_(band)
    b = { .dy = c->out_grad[0],
          .whole = c->in[!w->small],
          .small = c->in[w->small],
          .to = c->in_grad[!w->small],
          .adds = c->in_adds[!w->small],
          .second = w->small };
    float *const sums = c->scratch;
    for (int64_t row = 0; row < c->rows; row++) {
        memset(sums, 0, (size_t)own * sizeof *sums);
        for (int64_t o = 0; o < w->outer; o++) {
            if (w->inner == 1)
                sums[o] = VALUE_(sum_line)(&b, w->mid);
            else
                VALUE_(sum_lines)(&b, sums + o * w->inner, w->mid, w->inner);
            b.dy += piece, b.whole += piece, b.small += w->inner;
            if (b.to) b.to += piece;
        }
        if (!ds) continue;
        VECTOR_EACH(i, own, m,
                    VALUE_(put)(m, ds + i, vf_load_some(m, sums + i), c->in_adds[w->small]));
        ds += own;
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const binary_way w = binary_way_of(c->node);
    if (w.small < 0)
        VALUE_(backward_whole)(c);
    else if (w.across)
        VALUE_(backward_cross)(c, &w);
    else if (w.constant)
        VALUE_(backward_constant)(c, &w);
    else
        VALUE_(backward_spread)(c, &w);
}
#endif
#endif
