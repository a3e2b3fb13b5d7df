/* Dropout with 8 or 16 blocks of random numbers at a time: see _philox.h. */
#ifndef VALUE
#include "ops/args.h"
#include "ops/x86/_philox.h"

static void fill_mask(const keel_call *c, uint8_t *mask, double rate)
{
    const int64_t count = keel_row_count(&c->node->out[0]);
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    for (int64_t row = 0; row < c->rows; row++)
        philox_mask(mask + row * count, &chance, c->step->first_row + (uint64_t)(c->row + row), 0,
                    count, rate);
}

static keel_status prepare(keel_prepare *p)
{
    const keel_dropout_args *a = p->node->args;
    KEEL_TRY(vector_prepare(p));
    return p->node->training && !a->noise.rank && !a->first ? KEEL_OK : KEEL_EUNSUP;
}

#define VALUE_FILE "ops/x86/dropout.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(dropout, prepare);
#else
/* to = from scaled where the mask says so, else 0; `to` may be `from`. */
static void VALUE_(apply)(const keel_call *c, VALUE *to, const VALUE *from, const uint8_t *mask,
                          bool adds)
{
    const double rate = ((const keel_dropout_args *)c->node->args)->rate;
    const vf scale = vf_set((float)(rate < 1 ? 1 / (1 - rate) : 0));
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    VECTOR_EACH(i, count, m, {
        const vm kept = vi_greater(vi_load_bytes(m, mask + i), vi_set(0));
        vf v = vf_choose(kept, vf_mul(vx_load_some(m, from + i), scale), vf_zero());
        if (adds) v = vf_add(v, vx_load_some(m, to + i));
        vx_store_some(m, to + i, v);
    });
}

static void VALUE_(forward)(const keel_call *c)
{
    fill_mask(c, c->saved[0], ((const keel_dropout_args *)c->node->args)->rate);
    VALUE_(apply)(c, c->out[0], c->in[0], c->saved[0], false);
}

static void VALUE_(backward)(const keel_call *c)
{
    if (c->in_grad[0]) VALUE_(apply)(c, c->in_grad[0], c->out_grad[0], c->saved[0], c->in_adds[0]);
}
#endif
