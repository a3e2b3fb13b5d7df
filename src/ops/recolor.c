/* Changes the colours of each image [H, W, C] by numbers drawn for its row; ops/recolor.h lists the
 * changes. Gray and saturation need 3 channels: red, green, blue. Keras: RandomBrightness,
 * RandomContrast, RandomColorDegeneration, RandomGrayscale, RandomInvert, RandomSaturation,
 * RandomHue, RandomPosterization, Solarization, AutoContrast. */
#ifndef REAL
#include "ops/recolor.h"
#include "base/clones.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_recolor_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    if (!keel_recolor_takes(a->kind, n->in[0].shape.dim[2]))
        return keel_fail(KEEL_ESHAPE,
                         "recolor: images of %lld channels are not red, green and blue",
                         (long long)n->in[0].shape.dim[2]);
    return keel_infer_out(n, &n->in[0].shape);
}

/* What happens to an image. */
typedef struct change_of {
    keel_recolor_kind kind;
    double first, second; /* the draws */
    double low, high;     /* the range of values */
    int64_t channels;
} change_of;

static change_of change_at(const keel_call *c, int64_t row)
{
    const keel_recolor_args *a = c->node->args;
    return (change_of){ .kind = a->kind,
                        .first = keel_draw(c, row, a->first, a->range[0]),
                        .second = keel_draw(c, row, a->first + 1, a->range[1]),
                        .low = a->values.low,
                        .high = a->values.high,
                        .channels = c->node->in[0].shape.dim[2] };
}

enum { LANES = 48 /* whole vectors, and whole pixels of 1, 2, 3 or 4 channels */ };

static bool by_pixels(const keel_node *n)
{
    const keel_recolor_kind kind = ((const keel_recolor_args *)n->args)->kind;
    return kind != KEEL_RECOLOR_CONTRAST && kind != KEEL_RECOLOR_STRETCH; /* of the whole image */
}

#define REAL_FILE "ops/recolor.c"
#include "ops/real.h"
#include "ops/_recolor_bytes.h"

static void args_for_case(void *args, const char *text)
{
    static const char *const kinds[] = { "brightness", "contrast",  "fade",     "gray", "invert",
                                         "saturate",   "posterize", "solarize", "hue",  "stretch" };
    keel_recolor_args *a = args;
    for (int i = 0; i < 10; i++)
        if (keel_case_has(text, kinds[i])) a->kind = (keel_recolor_kind)i;
    keel_case_number(text, "a", &a->range[0].low);
    a->range[0].high = a->range[0].low;
    keel_case_number(text, "a_to", &a->range[0].high);
    keel_case_number(text, "b", &a->range[1].low);
    a->range[1].high = a->range[1].low;
    keel_case_number(text, "b_to", &a->range[1].high);
    a->values = (keel_range){ -1, 1 };
    keel_case_number(text, "low", &a->values.low);
    keel_case_number(text, "high", &a->values.high);
}

const keel_op keel_op_recolor = {
    .name = "recolor",
    .args_size = sizeof(keel_recolor_args),
    .infer = infer,
    .forward = REALS(forward),
    .forward_bytes = forward_bytes,
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
    .by_pixels = by_pixels,
    .cases = (const keel_case[]){ { "4,5,3", NULL, "brightness a -0.5 a_to 0.5" },
                                  { "3,4,2", NULL, "contrast a 0.5 a_to 1.5" },
                                  { "1,1,3", NULL, "contrast a 2 low -9 high 9" },
                                  { "3,4,3", NULL, "fade a -1 a_to 1" },
                                  { "3,4,1", NULL, "fade a 0.5" },
                                  { "2,3,3", NULL, "gray a 0.5 b 0 b_to 1" },
                                  { "2,3,4", NULL, "invert a 0.5 b 0 b_to 1" },
                                  { "4,3,3", NULL, "saturate a 0 a_to 1 low 0 high 0.75 positive" },
                                  { "4,3,3", NULL, "saturate a 0.3" },
                                  { "4,3,3", NULL, "hue a 0 a_to 1 b 0 b_to 1 low -2 high 3" },
                                  { "4,3,3", NULL, "hue a 0.75 low 0 high 1 positive" },
                                  { "4,3,2", NULL, "stretch low -3 high 5" },
                                  { "1,1,2", NULL, "stretch" },
                                  { "4,3,2", NULL, "posterize a 1 a_to 8 low -2 high 2" },
                                  { "4,3,2", NULL, "solarize a 10 b 0 b_to 255 low -2 high 2" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static REAL REAL_(clip)(REAL x, REAL low, REAL high)
{
    return x < low ? low : x > high ? high : x;
}

static REAL REAL_(gray)(const REAL *x, int64_t channels)
{
    return channels == 1 ? *x : (REAL)0.2989 * x[0] + (REAL)0.5870 * x[1] + (REAL)0.1140 * x[2];
}

/* Changes an image of n pixels. The scale is 1 or -1, so that fused products give the same bits. */
KEEL_CLONES static void REAL_(linear)(REAL *y, const REAL *x, int64_t count, REAL scale,
                                      REAL offset, REAL low, REAL high)
{
    for (int64_t i = 0; i < count; i++) y[i] = REAL_(clip)(x[i] * scale + offset, low, high);
}

static REAL REAL_(mean)(const REAL *x, int64_t n, int64_t channels)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i * channels];
    return (REAL)(sum / (double)n);
}

/* Means of channels of which LANES are whole pixels. */
KEEL_CLONES static void REAL_(means)(REAL mean[LANES], const REAL *x, int64_t n, int64_t channels)
{
    const int64_t count = n * channels, whole = count / LANES * LANES;
    double lane[LANES] = { 0 }, sum[LANES] = { 0 };
    for (int64_t i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += (double)x[i + k];
    for (int64_t i = whole; i < count; i++) lane[i - whole] += (double)x[i];
    for (int k = 0; k < LANES; k++) sum[k % channels] += lane[k];
    for (int k = 0; k < LANES; k++) mean[k] = (REAL)(sum[k % channels] / (double)n);
}

KEEL_CLONES static void REAL_(contrast_lanes)(REAL *y, const REAL *x, int64_t count,
                                              const REAL mean[LANES], REAL factor, REAL low,
                                              REAL high)
{
    const int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++)
            y[i + k] = REAL_(clip)((x[i + k] - mean[k]) * factor + mean[k], low, high);
    for (int64_t i = whole; i < count; i++)
        y[i] = REAL_(clip)((x[i] - mean[i - whole]) * factor + mean[i - whole], low, high);
}

/* `mean` NULL: these are all pixels of the image. */
static void REAL_(contrast)(REAL *y, const REAL *x, int64_t n, int64_t channels, const REAL *mean,
                            REAL factor, REAL low, REAL high)
{
    REAL own[LANES];
    if (LANES % channels == 0) {
        if (!mean) REAL_(means)(own, x, n, channels);
        REAL_(contrast_lanes)(y, x, n * channels, mean ? mean : own, factor, low, high);
        return;
    }
    for (int64_t k = 0; k < channels; k++) {
        const REAL of = REAL_(mean)(x + k, n, channels);
        for (int64_t i = k; i < n * channels; i += channels)
            y[i] = REAL_(clip)((x[i] - of) * factor + of, low, high);
    }
}

static void REAL_(fade)(REAL *y, const REAL *x, int64_t n, int64_t channels, REAL share, REAL low,
                        REAL high)
{
    for (int64_t i = 0; i < n; i++, x += channels, y += channels) {
        const REAL gray = REAL_(gray)(x, channels);
        for (int64_t k = 0; k < channels; k++)
            y[k] = REAL_(clip)(x[k] + share * (gray - x[k]), low, high);
    }
}

#include "ops/_recolor_hsv.h"

static void REAL_(posterize)(REAL *y, const REAL *x, int64_t count, int bits, REAL low, REAL high)
{
    const unsigned mask = 0xFFu << (8 - bits) & 0xFFu;
    const bool bytes = low == 0 && high == 255;
    for (int64_t i = 0; i < count; i++) {
        const REAL v = bytes ? x[i] : (x[i] - low) / (high - low) * 255;
        const REAL whole = (REAL)((unsigned)REAL_(clip)(v, 0, 255) & mask);
        y[i] = bytes ? whole : whole / 255 * (high - low) + low;
    }
}

static void REAL_(solarize)(REAL *y, const REAL *x, int64_t count, REAL add, REAL from, REAL low,
                            REAL high)
{
    for (int64_t i = 0; i < count; i++) {
        const REAL v = REAL_(clip)((x[i] - low) / (high - low) * 255 + add, 0, 255);
        y[i] = (v < from ? v : 255 - v) / 255 * (high - low) + low;
    }
}

/* Places of the least and the largest value of a channel of n pixels. */
static void REAL_(extremes)(const REAL *x, int64_t n, int64_t channels, int64_t at[2])
{
    at[0] = at[1] = 0;
    for (int64_t i = 0; i < n * channels; i += channels) {
        if (x[i] < x[at[0]]) at[0] = i;
        if (x[i] > x[at[1]]) at[1] = i;
    }
}

static void REAL_(stretch)(REAL *y, const REAL *x, int64_t n, int64_t channels, REAL low, REAL high)
{
    for (int64_t k = 0; k < channels; k++, x++, y++) {
        int64_t at[2];
        REAL_(extremes)(x, n, channels, at);
        const REAL least = x[at[0]], range = x[at[1]] - least;
        for (int64_t i = 0; i < n * channels; i += channels)
            y[i] =
                range > 0 ? REAL_(clip)((x[i] - least) / range, 0, 1) * (high - low) + low : x[i];
    }
}

static void REAL_(stretch_back)(REAL *dx, const REAL *dy, const REAL *x, int64_t n,
                                int64_t channels, REAL low, REAL high)
{
    for (int64_t k = 0; k < channels; k++, x++, dy++, dx++) {
        int64_t at[2];
        double to[2] = { 0, 0 };
        REAL_(extremes)(x, n, channels, at);
        const REAL least = x[at[0]], range = x[at[1]] - least, scale = (high - low) / range;
        for (int64_t i = 0; i < n * channels; i += channels) {
            const REAL part = (x[i] - least) / range;
            dx[i] += range > 0 ? dy[i] * scale : dy[i];
            to[0] += range > 0 ? (double)(dy[i] * scale * (1 - part)) : 0;
            to[1] += range > 0 ? (double)(dy[i] * scale * part) : 0;
        }
        for (int e = 0; e < 2; e++) dx[at[e]] -= (REAL)to[e];
    }
}

/* The gradient for an image, added to dx. */
static void REAL_(back)(const keel_recolor_args *a, double first, double second, const REAL *x,
                        const REAL *dy, REAL *dx, int64_t n, int64_t channels)
{
    const int64_t count = n * channels;
    const REAL low = (REAL)a->values.low, high = (REAL)a->values.high;
    const REAL f = (REAL)(a->kind == KEEL_RECOLOR_GRAY ? second < first : first);
    REAL of[LANES];
    switch (a->kind) {
    case KEEL_RECOLOR_BRIGHTNESS: {
        const REAL add = f * (high - low);
        for (int64_t i = 0; i < count; i++)
            if (x[i] + add >= low && x[i] + add <= high) dx[i] += dy[i];
        return;
    }
    case KEEL_RECOLOR_CONTRAST:
        if (LANES % channels == 0) REAL_(means)(of, x, n, channels);
        for (int64_t k = 0; k < channels; k++) {
            const REAL mean = LANES % channels ? REAL_(mean)(x + k, n, channels) : of[k];
            double sum = 0;
            for (int64_t i = k; i < count; i += channels) {
                const REAL y = (x[i] - mean) * f + mean;
                if (!(y >= low && y <= high)) continue;
                dx[i] += f * dy[i];
                sum += (double)dy[i];
            }
            const REAL share = (REAL)(sum / (double)n) * (1 - f);
            for (int64_t i = k; i < count; i += channels) dx[i] += share;
        }
        return;
    case KEEL_RECOLOR_GRAY:
    case KEEL_RECOLOR_FADE:
        for (int64_t i = 0; i < n; i++, x += channels, dy += channels, dx += channels) {
            static const double weight[3] = { 0.2989, 0.5870, 0.1140 };
            const REAL gray = REAL_(gray)(x, channels);
            REAL sum = 0;
            for (int64_t k = 0; k < channels; k++) {
                const REAL y = x[k] + f * (gray - x[k]);
                if (a->kind == KEEL_RECOLOR_FADE && !(y >= low && y <= high)) continue;
                dx[k] += (1 - f) * dy[k];
                sum += f * dy[k];
            }
            for (int64_t k = 0; k < channels; k++)
                dx[k] += channels == 1 ? sum : (REAL)weight[k] * sum;
        }
        return;
    case KEEL_RECOLOR_INVERT:
        for (int64_t i = 0; i < count; i++) dx[i] += second < first ? -dy[i] : dy[i];
        return;
    case KEEL_RECOLOR_SATURATE:
        REAL_(saturate_back)(dx, dy, x, n, (REAL)(first / (1 - first + 1e-7)), low, high);
        return;
    case KEEL_RECOLOR_HUE:
        REAL_(hue_back)(dx, dy, x, n, (REAL)((second > 0.5 ? -0.5 : 0.5) * first), low, high);
        return;
    case KEEL_RECOLOR_STRETCH:
        REAL_(stretch_back)(dx, dy, x, n, channels, low, high);
        return;
    case KEEL_RECOLOR_POSTERIZE: /* steps: flat wherever there is a slope */
        return;
    case KEEL_RECOLOR_SOLARIZE:
        for (int64_t i = 0; i < count; i++) {
            const REAL v = (x[i] - low) / (high - low) * 255 + f;
            if (v >= 0 && v <= 255) dx[i] += v < (REAL)second ? dy[i] : -dy[i];
        }
        return;
    }
}

/* Changes n pixels: all of an image, or some where `mean` has its means. y may be x. */
static void REAL_(change)(const change_of *c, const REAL *mean, REAL *y, const REAL *x, int64_t n)
{
    const REAL low = (REAL)c->low, high = (REAL)c->high, none = (REAL)INFINITY;
    const REAL first = (REAL)c->first;
    const int64_t count = n * c->channels;
    const bool does = c->second < c->first;
    switch (c->kind) {
    case KEEL_RECOLOR_BRIGHTNESS:
        REAL_(linear)(y, x, count, 1, first * (high - low), low, high);
        return;
    case KEEL_RECOLOR_CONTRAST:
        REAL_(contrast)(y, x, n, c->channels, mean, first, low, high);
        return;
    case KEEL_RECOLOR_FADE:
        REAL_(fade)(y, x, n, c->channels, first, low, high);
        return;
    case KEEL_RECOLOR_GRAY:
        REAL_(fade)(y, x, n, c->channels, does, -none, none);
        return;
    case KEEL_RECOLOR_INVERT:
        REAL_(linear)(y, x, count, does ? -1 : 1, does ? high : 0, -none, none);
        return;
    case KEEL_RECOLOR_SATURATE:
        REAL_(saturate)(y, x, n, (REAL)(c->first / (1 - c->first + 1e-7)), low, high);
        return;
    case KEEL_RECOLOR_POSTERIZE:
        REAL_(posterize)(y, x, count, (int)c->first, low, high);
        return;
    case KEEL_RECOLOR_HUE:
        REAL_(hue)(y, x, n, (REAL)((c->second > 0.5 ? -0.5 : 0.5) * c->first), low, high);
        return;
    case KEEL_RECOLOR_STRETCH:
        REAL_(stretch)(y, x, n, c->channels, low, high);
        return;
    case KEEL_RECOLOR_SOLARIZE:
        REAL_(solarize)(y, x, count, first, (REAL)c->second, low, high);
        return;
    }
}

static void REAL_(forward)(const keel_call *call)
{
    const keel_shape *s = &call->node->in[0].shape;
    const int64_t n = s->dim[0] * s->dim[1], count = n * s->dim[2];
    const REAL *x = call->in[0];
    REAL *y = call->out[0];
    for (int64_t row = 0; row < call->rows; row++, x += count, y += count) {
        const change_of c = change_at(call, row);
        REAL_(change)(&c, NULL, y, x, n);
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_recolor_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t n = s->dim[0] * s->dim[1], count = n * s->dim[2];
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, x += count, dy += count, dx += count) {
        if (!c->in_adds[0]) memset(dx, 0, (size_t)count * sizeof *dx);
        REAL_(back)
        (a, keel_draw(c, row, a->first, a->range[0]), keel_draw(c, row, a->first + 1, a->range[1]),
         x, dy, dx, n, s->dim[2]);
    }
}
#endif
