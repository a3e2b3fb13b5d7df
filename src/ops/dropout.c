/* Dropout: y = x mask / (1 - rate); the identity outside training.
 *
 * The mask is a function of (seed, epoch, layer, row, element), see base/philox.h: it does not
 * depend on how rows are cut over lanes. An element is kept where its uniform draw is >= rate. With
 * a noise shape, elements that differ only along a dim of 1 share their draw. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_dropout_args *a = n->args;
    char noise[96], in[96];
    KEEL_TRY(keel_infer_like(n));
    if (!(a->rate >= 0 && a->rate <= 1))
        return keel_fail(KEEL_EARG, "dropout: rate %g is not from 0 to 1", a->rate);
    if (a->noise.rank) {
        const keel_shape *s = &n->in[0].shape;
        bool fits = a->noise.rank == s->rank;
        for (int d = 0; fits && d < s->rank; d++)
            fits = a->noise.dim[d] == 1 || a->noise.dim[d] == s->dim[d];
        keel_shape_text(noise, &a->noise);
        keel_shape_text(in, s);
        if (!fits)
            return keel_fail(KEEL_ESHAPE,
                             "dropout: noise_shape %s does not fit a row %s; each dim must be 1 or "
                             "the row's",
                             noise, in);
    }
    if (keel_row_count(&n->in[0]) > UINT32_MAX)
        return keel_fail(KEEL_EUNSUP, "dropout: a row has more than 2^32 - 1 elements");
    if (!n->training) return KEEL_OK;
    return keel_node_add_saved(n, &(keel_spec){ KEEL_UINT8, n->in[0].shape });
}

/* The draw that element i of a row of shape s uses. */
static uint32_t draw_of(const keel_shape *s, const keel_shape *noise, int64_t i)
{
    if (!noise->rank) return (uint32_t)i;
    int64_t draw = 0, stride = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        const int64_t at = i % s->dim[d];
        i /= s->dim[d];
        if (noise->dim[d] != 1) draw += at * stride;
        stride *= noise->dim[d];
    }
    return (uint32_t)draw;
}

static void fill_mask(const keel_call *c, uint8_t *mask)
{
    const keel_dropout_args *a = c->node->args;
    const keel_shape *s = &c->node->out[0].shape;
    const int64_t count = keel_row_count(&c->node->out[0]);
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    for (int64_t row = 0; row < c->rows; row++) {
        const uint64_t position = c->step->first_row + (uint64_t)(c->row + row);
        uint32_t word[4], block = UINT32_MAX;
        for (int64_t i = 0; i < count; i++) {
            const uint32_t draw = a->first + draw_of(s, &a->noise, i);
            if (draw / 4 != block) keel_philox(word, &chance, position, block = draw / 4);
            mask[row * count + i] = keel_uniform(word[draw % 4]) >= a->rate;
        }
    }
}

#define REAL_FILE "ops/dropout.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_dropout_args *a = args;
    a->rate = 0.5;
    keel_case_number(text, "rate", &a->rate);
    a->noise.rank = keel_case_ints(text, "noise", a->noise.dim, KEEL_RANK_MAX);
}

/* The same numbers are kept: draws depend on the node's stream, which what is emitted has, too. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    *out = d->grad;
    return d->node->training ? keel_derive_one(d, &keel_op_dropout, d->node->args, d->grad, out)
                             : KEEL_OK;
}

const keel_op keel_op_dropout = {
    .name = "dropout",
    .args_size = sizeof(keel_dropout_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_SAVED,
    .inplace = true,
    .cases = (const keel_case[]){ { "37", NULL, NULL },
                                  { "4,5,3", NULL, "rate 0.3 noise 1,5,3" },
                                  { "3,7", NULL, "rate 0.9 noise 3,1" },
                                  { "5", NULL, "rate 0" },
                                  { "5", NULL, "rate 1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const double rate = ((const keel_dropout_args *)c->node->args)->rate;
    const REAL scale = (REAL)(rate < 1 ? 1 / (1 - rate) : 0);
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    uint8_t *mask = c->node->training ? c->saved[0] : NULL;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    if (!c->node->training) {
        if (y != x) memcpy(y, x, (size_t)count * sizeof(REAL));
        return;
    }
    fill_mask(c, mask);
    for (int64_t i = 0; i < count; i++) y[i] = mask[i] ? x[i] * scale : 0;
}

static void REAL_(backward)(const keel_call *c)
{
    const double rate = ((const keel_dropout_args *)c->node->args)->rate;
    const REAL scale = (REAL)(rate < 1 ? 1 / (1 - rate) : 0);
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const uint8_t *mask = c->node->training ? c->saved[0] : NULL;
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < count; i++) {
        const REAL g = !mask ? dy[i] : mask[i] ? dy[i] * scale : 0;
        dx[i] = c->in_adds[0] ? dx[i] + g : g;
    }
}
#endif
