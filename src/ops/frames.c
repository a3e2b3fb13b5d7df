/* The frames of a signal along its last dim, each times a window: [.., T] become [.., frames,
 * size]. Keras: ops.extract_sequences, and the first part of ops.stft. */
#ifndef REAL
#include "ops/framing.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_frames_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    const int64_t t = out.rank ? out.dim[out.rank - 1] : 0;
    if (out.rank < 1 || out.rank == KEEL_RANK_MAX || a->stride < 1 || a->size < 1 ||
        a->size > KEEL_FFT_MAX)
        return keel_fail(KEEL_EUNSUP,
                         "frames: rows must be signals, and a frame at most %d numbers",
                         KEEL_FFT_MAX);
    if (a->centred ? t <= a->size / 2 : t < a->size)
        return keel_fail(KEEL_ESHAPE, "frames: %lld numbers are too few for frames of %lld",
                         (long long)t, (long long)a->size);
    out.dim[out.rank - 1] = 1 + (t + (a->centred ? a->size / 2 * 2 : 0) - a->size) / a->stride;
    out.dim[out.rank++] = a->size;
    n->scratch = a->size * (int64_t)sizeof(double);
    return keel_infer_out(n, &out);
}

/* The sample of n that element i of a frame is. */
static int64_t sample_of(const keel_frames_args *a, int64_t frame, int64_t i, int64_t n)
{
    int64_t at = frame * a->stride + i - (a->centred ? a->size / 2 : 0);
    if (at < 0) at = -at;
    return at < n ? at : 2 * (n - 1) - at;
}

#define REAL_FILE "ops/frames.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_frames_for_case(args, text);
}

const keel_op keel_op_frames = {
    .name = "frames",
    .args_size = sizeof(keel_frames_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = 0,
    .cases = (const keel_case[]){ { "9", NULL, "size 4 stride 3" },
                                  { "2,7", NULL, "size 3 stride 1 hann" },
                                  { "8", NULL, "size 6 stride 2 length 4 hamming centred" },
                                  { "7", NULL, "size 5 stride 2 length 3 given" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_frames_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t n = in->dim[in->rank - 1], frames = c->node->out[0].shape.dim[in->rank - 1];
    const int64_t lines = c->rows * (keel_row_count(&c->node->in[0]) / n);
    double *factor = c->scratch;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    keel_frame_factors(a, factor);
    for (int64_t line = 0; line < lines; line++, x += n)
        for (int64_t f = 0; f < frames; f++)
            for (int64_t i = 0; i < a->size; i++)
                *y++ = (REAL)((double)x[sample_of(a, f, i, n)] * factor[i]);
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_frames_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t n = in->dim[in->rank - 1], frames = c->node->out[0].shape.dim[in->rank - 1];
    const int64_t lines = c->rows * (keel_row_count(&c->node->in[0]) / n);
    double *factor = c->scratch;
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    keel_frame_factors(a, factor);
    for (int64_t line = 0; dx && line < lines; line++, dx += n) {
        if (!c->in_adds[0]) memset(dx, 0, (size_t)n * sizeof *dx);
        for (int64_t f = 0; f < frames; f++)
            for (int64_t i = 0; i < a->size; i++)
                dx[sample_of(a, f, i, n)] += (REAL)((double)*dy++ * factor[i]);
    }
}
#endif
