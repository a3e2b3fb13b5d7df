/* y = x w with a weight for each place of the last dim, 8 or 16 at a time, values float32 or
 * bfloat16. The weight gradient goes over bands of lines, whose sums stay in registers. */
#ifndef VALUE
#include "ops/x86/_vector.h"

enum { BAND = 128 };

static int64_t own_of(const keel_node *n)
{
    return keel_row_count(&n->weight[0]);
}

static int64_t lines_of(const keel_call *c)
{
    return c->rows * (keel_row_count(&c->node->in[0]) / own_of(c->node));
}

/* One number for all is left to the reference. */
static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || own_of(p->node) == 1) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS) p->scratch = own_of(p->node) * (int64_t)sizeof(float);
    return KEEL_OK;
}

static inline void move_sums(float *to, const float *from, int64_t n, bool adds)
{
    VECTOR_MOVE(to, from, n, adds);
}

#define VALUE_FILE "ops/x86/scale.c"
#include "ops/x86/_values.h"

VECTOR_BOTH_WEIGHTS(scale, prepare);
#else
static void VALUE_(multiply)(const keel_call *c, const VALUE *x, VALUE *y, bool adds)
{
    const int64_t n = own_of(c->node), lines = lines_of(c);
    const float *w = c->weight[0];
    for (int64_t i = 0; i < lines; i++, x += n, y += n)
        VECTOR_EACH(k, n, m, {
            vf v = vf_mul(vx_load_some(m, x + k), vf_load_some(m, w + k));
            if (adds) v = vf_add(v, vx_load_some(m, y + k));
            vx_store_some(m, y + k, v);
        });
}

static void VALUE_(forward)(const keel_call *c)
{
    VALUE_(multiply)(c, c->in[0], c->out[0], false);
}

static void VALUE_(backward)(const keel_call *c)
{
    if (c->in_grad[0]) VALUE_(multiply)(c, c->out_grad[0], c->in_grad[0], c->in_adds[0]);
}

static void VALUE_(weights)(const keel_call *c)
{
    const int64_t n = own_of(c->node), lines = lines_of(c);
    const VALUE *x = c->in[0], *dy = c->out_grad[0];
    float *sums = c->scratch;
    if (!c->weight_grad[0]) return;
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t h = 0; h < lines; h += BAND)
        VECTOR_EACH(k, n, m, {
            vf sum = vf_zero();
            for (int64_t i = h; i < lines && i < h + BAND; i++)
                sum = vf_fma(vx_load_some(m, x + i * n + k), vx_load_some(m, dy + i * n + k), sum);
            vf_store_some(m, sums + k, vf_add(sum, vf_load_some(m, sums + k)));
        });
    move_sums(c->weight_grad[0], sums, n, c->weight_adds);
}
#endif
