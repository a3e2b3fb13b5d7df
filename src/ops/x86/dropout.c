/* Dropout with 8 or 16 blocks of random numbers at a time: see _philox.h. Elements that share a
 * draw get its byte of the mask by memset or memcpy. */
#ifndef VALUE
#include "ops/args.h"
#include "ops/x86/_philox.h"

/* A row's mask, dim by dim: where the noise has a dim of 1, its places repeat. */
typedef struct masker {
    const keel_shape *shape, *noise;
    keel_chance chance;
    uint64_t row;
    double rate;
} masker;

static uint8_t kept(const masker *k, uint32_t draw)
{
    uint32_t word[4];
    keel_philox(word, &k->chance, k->row, draw / 4);
    return keel_uniform(word[draw % 4]) >= k->rate;
}

/* Whether all dims from d on are 1 in the noise, or none of them is. */
static bool all_from(const masker *k, int d, bool one)
{
    bool all = true;
    for (; d < k->shape->rank; d++) all = all && (k->noise->dim[d] == 1) == one;
    return all;
}

/* n draws from `draw` on, one for each element. */
static void draw_each(const masker *k, uint8_t *mask, uint32_t draw, int64_t n)
{
    for (; n > 0 && draw % 4; n--) *mask++ = kept(k, draw++);
    if (n > 0) philox_mask(mask, &k->chance, k->row, draw / 4, n, k->rate);
}

/* The `count` elements of dims d and on, which share `draws` draws from `draw` on. */
static void fill_dims(const masker *k, uint8_t *mask, int d, int64_t count, uint32_t draw,
                      uint32_t draws)
{
    const int64_t n = d < k->shape->rank ? k->shape->dim[d] : 1, each = count / n;
    if (all_from(k, d, true)) {
        memset(mask, kept(k, draw), (size_t)count);
    } else if (all_from(k, d, false)) {
        draw_each(k, mask, draw, count);
    } else if (k->noise->dim[d] == 1) {
        fill_dims(k, mask, d + 1, each, draw, draws);
        for (int64_t i = 1; i < n; i++) memcpy(mask + i * each, mask, (size_t)each);
    } else {
        draws /= (uint32_t)n;
        for (int64_t i = 0; i < n; i++, draw += draws)
            fill_dims(k, mask + i * each, d + 1, each, draw, draws);
    }
}

static void fill_mask(const keel_call *c, uint8_t *mask)
{
    const keel_dropout_args *a = c->node->args;
    const int64_t count = keel_row_count(&c->node->out[0]);
    masker k = { .shape = &c->node->out[0].shape,
                 .noise = &a->noise,
                 .chance = { c->step->seed, c->step->epoch, c->node->stream },
                 .row = c->step->first_row + (uint64_t)c->row,
                 .rate = a->rate };
    for (int64_t row = 0; row < c->rows; row++, k.row++, mask += count)
        if (a->noise.rank)
            fill_dims(&k, mask, 0, count, a->first, (uint32_t)keel_shape_count(&a->noise));
        else
            draw_each(&k, mask, a->first, count);
}

#define VALUE_FILE "ops/x86/dropout.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(dropout, vector_prepare);
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

/* Where nothing is dropped, values pass through; `to` may be `from`. */
static void VALUE_(pass)(const keel_call *c, VALUE *to, const VALUE *from, bool adds)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    if (to != from || adds) VECTOR_MOVE(to, from, count, adds);
}

static void VALUE_(forward)(const keel_call *c)
{
    if (!c->node->training) {
        VALUE_(pass)(c, c->out[0], c->in[0], false);
        return;
    }
    fill_mask(c, c->saved[0]);
    VALUE_(apply)(c, c->out[0], c->in[0], c->saved[0], false);
}

static void VALUE_(backward)(const keel_call *c)
{
    if (!c->in_grad[0]) return;
    if (c->node->training)
        VALUE_(apply)(c, c->in_grad[0], c->out_grad[0], c->saved[0], c->in_adds[0]);
    else
        VALUE_(pass)(c, c->in_grad[0], c->out_grad[0], c->in_adds[0]);
}
#endif
