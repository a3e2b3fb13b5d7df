/* Two operands that repeat along different dims, as (T, 1, D) and (S, D) do: a part of _binary.h.
 * For one place of `across`, this is a small operand beside the other, which is the same for all of
 * them; so its gradient is added up in scratch. */

static void VALUE_(forward_cross)(const keel_call *c, const binary_way *w)
{
    const int64_t line = w->mid * w->inner;
    const VALUE *small = c->in[w->small], *other = c->in[!w->small];
    VALUE *y = c->out[0];
    for (int64_t o = 0; o < c->rows * w->outer; o++, other += line)
        for (int64_t p = 0; p < w->across; p++, small += w->inner, y += line)
            VALUE_(beside)(c->node->args, y, other, small, w);
}

#ifndef BINARY_FORWARD_ONLY
/* A place of `across`, and what it adds to. */
typedef struct VALUE_(cross) {
    const VALUE *dy, *small, *other;
    float *sums; /* [mid, inner] of the other operand */
    bool second; /* the small operand is the second */
} VALUE_(cross);

/* Element i of dy beside `one`: returns what goes into the small operand's sum. */
static inline vf VALUE_(cross_step)(const VALUE_(cross) * x, int64_t i, vf one, vm m)
{
    const vf g = vx_load_some(m, x->dy + i), at = vx_load_some(m, x->other + i);
    const vf more = x->second ? gradient_a(g, at, one) : gradient_b(g, one, at);
    vf_store_some(m, x->sums + i, vf_add(vf_load_some(m, x->sums + i), more));
    return x->second ? gradient_b(g, at, one) : gradient_a(g, one, at);
}

/* Writes the small operand's gradient, ds [inner]; NULL: not wanted. */
static void VALUE_(cross_place)(const VALUE_(cross) * x, const binary_way *w, VALUE *ds, bool adds)
{
    if (w->inner == 1) {
        const vf one = VALUE_(first_of)(x->small);
        vf sum = vf_zero();
        VECTOR_EACH(k, w->mid, m, {
            const vf g = VALUE_(cross_step)(x, k, one, m);
            sum = vf_add(sum, vf_choose(m, g, vf_zero()));
        });
        if (ds) VALUE_(put)(vm_first(1), ds, vf_set(vf_sum(sum)), adds);
        return;
    }
    VECTOR_EACH(k, w->inner, m, {
        const vf one = vx_load_some(m, x->small + k);
        vf sum = vf_zero();
        for (int64_t i = 0; i < w->mid; i++)
            sum = vf_add(sum, VALUE_(cross_step)(x, i * w->inner + k, one, m));
        if (ds) VALUE_(put)(m, ds + k, sum, adds);
    });
}

static void VALUE_(backward_cross)(const keel_call *c, const binary_way *w)
{
    const int64_t line = w->mid * w->inner;
    VALUE *ds = c->in_grad[w->small], *to = c->in_grad[!w->small];
    VALUE_(cross)
    x = { .dy = c->out_grad[0],
          .small = c->in[w->small],
          .other = c->in[!w->small],
          .sums = c->scratch,
          .second = w->small };
    for (int64_t o = 0; o < c->rows * w->outer; o++, x.other += line) {
        memset(x.sums, 0, (size_t)line * sizeof *x.sums);
        for (int64_t p = 0; p < w->across; p++, x.dy += line, x.small += w->inner) {
            VALUE_(cross_place)(&x, w, ds, c->in_adds[w->small]);
            if (ds) ds += w->inner;
        }
        if (to) VECTOR_MOVE(to + o * line, x.sums, line, c->in_adds[!w->small]);
    }
}
#endif
