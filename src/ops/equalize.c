/* Histogram equalization of each channel of images [H, W, C]: a value becomes the part of the
 * pixels that are not brighter, in steps of 1/255 of the range. A channel of one bin stays.
 * Values become whole numbers here, so no gradient flows but through such a channel.
 *
 * Keras finds the bin of a pixel in two ways, v (bins - 1) / 255 for the histogram and
 * v / 255 (bins - 1) for looking up; so do we, in the same types, since they may differ by one.
 * Keras: Equalization. */
#ifndef REAL
#include "ops/equalize.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_equalize_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    if (a->bins < 1 || a->bins > KEEL_EQUALIZE_BINS_MAX)
        return keel_fail(KEEL_EARG, "equalize: %lld bins are not in [1, %d]", (long long)a->bins,
                         KEEL_EQUALIZE_BINS_MAX);
    if (!(a->values.low < a->values.high))
        return keel_fail(KEEL_EARG, "equalize: values from %g to %g", a->values.low,
                         a->values.high);
    n->scratch = a->bins * (int64_t)sizeof(double);
    return keel_infer_out(n, &n->in[0].shape);
}

static int64_t bin_within(double x, int64_t bins)
{
    return x >= (double)(bins - 1) ? bins - 1 : x > 0 ? (int64_t)x : 0; /* 0 for NaN, too */
}

/* Makes of the counts the value for each bin, in [0, 255]. */
static void level(double *count, int64_t bins, int64_t pixels)
{
    double first = 0, sum = 0;
    for (int64_t b = 0; b < bins && first == 0; b++) first = count[b];
    const double others = (double)pixels - first;
    for (int64_t b = 0; b < bins; b++) {
        sum += count[b];
        const double part = (sum - first) * 255 / (others > 0 ? others : 1);
        count[b] = fmin(fmax(nearbyint(part), 0), 255);
    }
}

#define REAL_FILE "ops/equalize.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_equalize_args *a = args;
    *a = (keel_equalize_args){ .bins = 256, .values = { -1, 1 } };
    keel_case_ints(text, "bins", &a->bins, 1);
    keel_case_number(text, "low", &a->values.low);
    keel_case_number(text, "high", &a->values.high);
}

const keel_op keel_op_equalize = {
    .name = "equalize",
    .args_size = sizeof(keel_equalize_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
    .cases = (const keel_case[]){ { "4,5,2", NULL, "bins 3" },
                                  { "3,2,1", NULL, "bins 1" },
                                  { "1,1,3", NULL, "low -3 high 3" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* A value as one from 0 to 255. */
static REAL REAL_(of_byte)(const keel_equalize_args *a, REAL x)
{
    const double scale = 255 / (a->values.high - a->values.low);
    return x * (REAL)scale + (REAL)(0 - a->values.low * scale);
}

/* The histogram of channel k of an image of n pixels. Returns how many bins are not empty. */
static int64_t REAL_(count)(const keel_equalize_args *a, const REAL *x, int64_t n, int64_t channels,
                            double *count)
{
    int64_t used = 0;
    memset(count, 0, (size_t)a->bins * sizeof *count);
    for (int64_t i = 0; i < n * channels; i += channels) {
        const float v = (float)REAL_(of_byte)(a, x[i]);
        double *bin = count + bin_within((double)(v * (float)(a->bins - 1) / 255.0F), a->bins);
        used += *bin == 0;
        *bin += 1;
    }
    return used;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_equalize_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t channels = s->dim[2], n = s->dim[0] * s->dim[1];
    const double scale = (a->values.high - a->values.low) / 255;
    double *table = c->scratch;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t k = 0; k < c->rows * channels; k++) {
        const int64_t at = k / channels * n * channels + k % channels;
        const bool flat = REAL_(count)(a, x + at, n, channels, table) <= 1;
        level(table, a->bins, n);
        for (int64_t i = at; i < at + n * channels; i += channels) {
            const REAL v = REAL_(of_byte)(a, x[i]);
            const REAL bin = v / (REAL)255 * (REAL)(a->bins - 1);
            const double to = flat ? (double)v : table[bin_within((double)bin, a->bins)];
            y[i] = (REAL)(to * scale + a->values.low);
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_equalize_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t channels = s->dim[2], n = s->dim[0] * s->dim[1];
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t k = 0; dx && k < c->rows * channels; k++) {
        const int64_t at = k / channels * n * channels + k % channels;
        const bool flat = REAL_(count)(a, x + at, n, channels, c->scratch) <= 1;
        for (int64_t i = at; i < at + n * channels; i += channels) {
            const REAL g = flat ? dy[i] : 0;
            dx[i] = c->in_adds[0] ? dx[i] + g : g;
        }
    }
}
#endif
