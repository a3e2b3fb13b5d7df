/* Normal draws z of mean 0, in training: y = x + stddev z, or y = x (1 + stddev z); else y = x.
 * A draw is a function of (seed, epoch, layer, row, element), as those of dropout. Keras:
 * GaussianNoise, GaussianDropout. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_noise_args *a = n->args;
    KEEL_TRY(keel_infer_like(n));
    if (!(a->stddev >= 0 && a->stddev <= 1e30))
        return keel_fail(KEEL_EARG, "noise: stddev %g is not a number from 0", a->stddev);
    if (keel_row_count(&n->in[0]) > UINT32_MAX)
        return keel_fail(KEEL_EUNSUP, "noise: a row has more than 2^32 - 1 elements");
    if (!n->training || !n->backward || !a->multiplies) return KEEL_OK;
    return keel_node_add_saved(n, &(keel_spec){ n->real, n->in[0].shape }); /* the factors */
}

#define REAL_FILE "ops/noise.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_noise_args *a = args;
    a->stddev = 0.5;
    keel_case_number(text, "stddev", &a->stddev);
    a->multiplies = keel_case_has(text, "multiplies");
}

/* Factors are drawn again, the same: draws depend on the node's stream, which what is emitted has,
 * too. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_noise_args *a = d->node->args;
    *out = d->grad;
    return a->multiplies && d->node->training ? keel_derive_one(d, &keel_op_noise, a, d->grad, out)
                                              : KEEL_OK;
}

const keel_op keel_op_noise = {
    .name = "noise",
    .args_size = sizeof(keel_noise_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_SAVED,
    .costly = true,
    .cases = (const keel_case[]){ { "37", NULL, NULL },
                                  { "4,5,3", NULL, "multiplies" },
                                  { "5", NULL, "stddev 0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_noise_args *a = c->node->args;
    const int64_t count = keel_row_count(&c->node->out[0]);
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    const REAL *x = c->in[0];
    REAL *y = c->out[0], *factor = c->node->n_saved ? c->saved[0] : NULL;
    if (!c->node->training) {
        if (y != x) memcpy(y, x, (size_t)(c->rows * count) * sizeof *y);
        return;
    }
    for (int64_t row = 0; row < c->rows; row++, x += count, y += count) {
        const uint64_t position = c->step->first_row + (uint64_t)(c->row + row);
        double z[4];
        for (int64_t i = 0; i < count; i++) {
            if (i % 4 == 0) keel_normals(z, &chance, position, (uint32_t)(i / 4));
            const double draw = a->stddev * z[i % 4];
            y[i] = (REAL)(a->multiplies ? x[i] * (REAL)(1 + draw) : x[i] + draw);
            if (factor) *factor++ = (REAL)(1 + draw);
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const REAL *dy = c->out_grad[0], *factor = c->node->n_saved ? c->saved[0] : NULL;
    REAL *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < count; i++) {
        const REAL g = factor ? dy[i] * factor[i] : dy[i];
        dx[i] = c->in_adds[0] ? dx[i] + g : g;
    }
}
#endif
