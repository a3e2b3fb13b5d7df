/* A signal made of frames that overlap, each times a window: [.., frames, size] become [.., T],
 * numbers `begin` to `begin` + `count` of the sums. Keras: the second part of ops.istft. */
#ifndef REAL
#include "ops/framing.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    const keel_frames_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    if (out.rank < 2 || out.dim[out.rank - 1] != a->size || a->stride < 1 || a->size > KEEL_FFT_MAX)
        return keel_fail(KEEL_ESHAPE, "overlap: rows must be frames of %lld numbers, at most %d",
                         (long long)a->size, KEEL_FFT_MAX);
    const int64_t sums = a->size + (out.dim[out.rank - 2] - 1) * a->stride;
    if (a->begin < 0 || a->count < 1 || a->begin > sums - a->count)
        return keel_fail(KEEL_ESHAPE, "overlap: %lld numbers from %lld on are not in %lld",
                         (long long)a->count, (long long)a->begin, (long long)sums);
    out.dim[--out.rank - 1] = a->count;
    n->scratch = a->size * (int64_t)sizeof(double);
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/overlap.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_frames_for_case(args, text);
}

const keel_op keel_op_overlap = {
    .name = "overlap",
    .args_size = sizeof(keel_frames_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = 0,
    .cases = (const keel_case[]){ { "3,4", NULL, "size 4 stride 3 count 10" },
                                  { "2,3,4", NULL, "size 4 stride 2 begin 2 count 4 hann inverse" },
                                  { "3,4", NULL, "size 4 stride 1 count 5 given inverse" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_frames_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t frames = in->dim[in->rank - 2];
    const int64_t lines = c->rows * (keel_row_count(&c->node->in[0]) / (frames * a->size));
    double *factor = c->scratch;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    keel_frame_factors(a, factor);
    for (int64_t line = 0; line < lines; line++, x += frames * a->size, y += a->count)
        for (int64_t t = 0; t < a->count; t++) {
            const int64_t at = t + a->begin;
            double sum = 0;
            for (int64_t f = at < a->size ? 0 : (at - a->size) / a->stride + 1;
                 f < frames && f * a->stride <= at; f++) {
                const int64_t i = at - f * a->stride;
                sum += (double)x[f * a->size + i] * factor[i];
            }
            y[t] = (REAL)sum;
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_frames_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t frames = in->dim[in->rank - 2];
    const int64_t lines = c->rows * (keel_row_count(&c->node->in[0]) / (frames * a->size));
    double *factor = c->scratch;
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    keel_frame_factors(a, factor);
    for (int64_t line = 0; dx && line < lines; line++, dy += a->count)
        for (int64_t f = 0; f < frames; f++)
            for (int64_t i = 0; i < a->size; i++, dx++) {
                const int64_t t = f * a->stride + i - a->begin;
                const double g = t >= 0 && t < a->count ? (double)dy[t] * factor[i] : 0;
                *dx = (REAL)(c->in_adds[0] ? *dx + g : g);
            }
}
#endif
