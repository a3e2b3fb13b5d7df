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

#define REAL_FILE "ops/recolor.c"
#include "ops/real.h"

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
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
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
KEEL_CLONES static void REAL_(linear)(REAL *restrict y, const REAL *restrict x, int64_t count,
                                      REAL scale, REAL offset, REAL low, REAL high)
{
    for (int64_t i = 0; i < count; i++) y[i] = REAL_(clip)(x[i] * scale + offset, low, high);
}

static REAL REAL_(mean)(const REAL *x, int64_t n, int64_t channels)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i * channels];
    return (REAL)(sum / (double)n);
}

static void REAL_(contrast)(REAL *y, const REAL *x, int64_t n, int64_t channels, REAL factor,
                            REAL low, REAL high)
{
    for (int64_t k = 0; k < channels; k++) {
        const REAL mean = REAL_(mean)(x + k, n, channels);
        for (int64_t i = k; i < n * channels; i += channels)
            y[i] = REAL_(clip)((x[i] - mean) * factor + mean, low, high);
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

/* Of HSV with value v = max x and saturation s = (v - min x) / v the new colour is
 * v (1 - s' (v - x) / (v - min x)). */
typedef struct REAL_(hsv) {
    int most, least; /* channels */
    REAL v, range, s;
} REAL_(hsv);

static REAL_(hsv) REAL_(hsv_of)(const REAL x[3])
{
    REAL_(hsv) h = { 0 };
    for (int k = 1; k < 3; k++) {
        if (x[k] > x[h.most]) h.most = k;
        if (x[k] < x[h.least]) h.least = k;
    }
    h.v = x[h.most];
    h.range = h.v - x[h.least];
    h.s = h.v > 0 ? h.range / h.v : 0;
    return h;
}

static void REAL_(saturate)(REAL *y, const REAL *x, int64_t n, REAL factor, REAL low, REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {
        const REAL_(hsv) h = REAL_(hsv_of)(x);
        const REAL s = REAL_(clip)(h.s * factor, low, high);
        for (int k = 0; k < 3; k++) {
            /* A gray pixel has no hue: TensorFlow takes red. */
            const REAL from = h.range > 0 ? (h.v - x[k]) / h.range : (REAL)(k > 0);
            y[k] = h.v * (1 - s * from);
        }
    }
}

static void REAL_(saturate_back)(REAL *dx, const REAL *dy, const REAL *x, int64_t n, REAL factor,
                                 REAL low, REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, dy += 3, dx += 3) {
        const REAL_(hsv) h = REAL_(hsv_of)(x);
        const REAL s = h.s * factor;
        const bool free = s >= low && s <= high && h.v > 0; /* then s v / range is the factor */
        const REAL bound = REAL_(clip)(s, low, high);
        for (int k = 0; k < 3; k++) {
            const REAL from = h.range > 0 ? (h.v - x[k]) / h.range : (REAL)(k > 0);
            if (free) {
                dx[h.most] += dy[k] * (1 - factor);
                dx[k] += dy[k] * factor;
                continue;
            }
            dx[h.most] += dy[k] * (1 - bound * from);
            if (!(h.range > 0)) continue;
            const REAL g = dy[k] * bound * h.v / h.range;
            dx[k] += g;
            dx[h.most] -= g * (1 - from);
            dx[h.least] -= g * from;
        }
    }
}

/* Where a hue of h sixths of a turn has channel k between v (0) and the least (1), and how it moves
 * there with h. */
static REAL REAL_(below)(REAL h, int k, REAL *slope)
{
    const REAL at = h - 2 * (REAL)k; /* red is 0, green 2, blue 4 */
    const REAL turn = at > 3 ? at - 6 : at < -3 ? at + 6 : at, away = turn < 0 ? -turn : turn;
    *slope = away > 1 && away < 2 ? (turn < 0 ? (REAL)-1 : (REAL)1) : 0;
    return REAL_(clip)(away - 1, 0, 1);
}

/* Hue in sixths of a turn, and of its formula the sector and the two channels it subtracts. */
static REAL REAL_(hue_of)(const REAL x[3], const REAL_(hsv) * h, int *plus, int *minus)
{
    *plus = (h->most + 1) % 3;
    *minus = (h->most + 2) % 3;
    if (!(h->range > 0)) return 0;
    const REAL hue = 2 * (REAL)h->most + (x[*plus] - x[*minus]) / h->range;
    return hue < 0 ? hue + 6 : hue;
}

static REAL REAL_(turned)(REAL hue, REAL turn)
{
    const REAL h = hue + 6 * turn;
    return h > 6 ? h - 6 : h < 0 ? h + 6 : h;
}

static void REAL_(hue)(REAL *y, const REAL *x, int64_t n, REAL turn, REAL low, REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {
        int plus, minus;
        REAL slope, unit[3];
        for (int k = 0; k < 3; k++) unit[k] = (x[k] - low) / (high - low);
        REAL_(hsv) h = REAL_(hsv_of)(unit);
        const REAL hue = REAL_(turned)(REAL_(hue_of)(unit, &h, &plus, &minus), turn);
        for (int k = 0; k < 3; k++) {
            const REAL v = h.v - h.s * h.v * REAL_(below)(hue, k, &slope);
            y[k] = REAL_(clip)(v, 0, 1) * (high - low) + low;
        }
    }
}

static void REAL_(hue_back)(REAL *dx, const REAL *dy, const REAL *x, int64_t n, REAL turn, REAL low,
                            REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, dy += 3, dx += 3) {
        int plus, minus;
        REAL unit[3];
        for (int k = 0; k < 3; k++) unit[k] = (x[k] - low) / (high - low);
        const REAL_(hsv) h = REAL_(hsv_of)(unit);
        const REAL hue = REAL_(hue_of)(unit, &h, &plus, &minus);
        const REAL range = h.s * h.v; /* 0 where v is not above 0 */
        const REAL share = h.range > 0 ? (unit[plus] - unit[minus]) / h.range : 0;
        for (int k = 0; k < 3; k++) {
            REAL slope;
            const REAL below = REAL_(below)(REAL_(turned)(hue, turn), k, &slope);
            const REAL v = h.v - range * below;
            if (!(v >= 0 && v <= 1)) continue;
            dx[h.most] += dy[k];
            if (!(range > 0)) continue;
            const REAL by_range = below - slope * share; /* of the range; the hue has it too */
            dx[h.most] -= dy[k] * by_range;
            dx[h.least] += dy[k] * by_range;
            dx[plus] -= dy[k] * slope;
            dx[minus] += dy[k] * slope;
        }
    }
}

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
    switch (a->kind) {
    case KEEL_RECOLOR_BRIGHTNESS: {
        const REAL add = f * (high - low);
        for (int64_t i = 0; i < count; i++)
            if (x[i] + add >= low && x[i] + add <= high) dx[i] += dy[i];
        return;
    }
    case KEEL_RECOLOR_CONTRAST:
        for (int64_t k = 0; k < channels; k++) {
            const REAL mean = REAL_(mean)(x + k, n, channels);
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

static void REAL_(forward)(const keel_call *c)
{
    const keel_recolor_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t n = s->dim[0] * s->dim[1], channels = s->dim[2], count = n * channels;
    const REAL low = (REAL)a->values.low, high = (REAL)a->values.high, none = (REAL)INFINITY;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += count, y += count) {
        const double first = keel_draw(c, row, a->first, a->range[0]);
        const double second = keel_draw(c, row, a->first + 1, a->range[1]);
        const bool does = second < first;
        switch (a->kind) {
        case KEEL_RECOLOR_BRIGHTNESS:
            REAL_(linear)(y, x, count, 1, (REAL)first * (high - low), low, high);
            break;
        case KEEL_RECOLOR_CONTRAST:
            REAL_(contrast)(y, x, n, channels, (REAL)first, low, high);
            break;
        case KEEL_RECOLOR_FADE:
            REAL_(fade)(y, x, n, channels, (REAL)first, low, high);
            break;
        case KEEL_RECOLOR_GRAY:
            REAL_(fade)(y, x, n, channels, does, -none, none);
            break;
        case KEEL_RECOLOR_INVERT:
            REAL_(linear)(y, x, count, does ? -1 : 1, does ? high : 0, -none, none);
            break;
        case KEEL_RECOLOR_SATURATE:
            REAL_(saturate)(y, x, n, (REAL)(first / (1 - first + 1e-7)), low, high);
            break;
        case KEEL_RECOLOR_POSTERIZE:
            REAL_(posterize)(y, x, count, (int)first, low, high);
            break;
        case KEEL_RECOLOR_HUE:
            REAL_(hue)(y, x, n, (REAL)((second > 0.5 ? -0.5 : 0.5) * first), low, high);
            break;
        case KEEL_RECOLOR_STRETCH:
            REAL_(stretch)(y, x, n, channels, low, high);
            break;
        case KEEL_RECOLOR_SOLARIZE:
            REAL_(solarize)(y, x, count, (REAL)first, (REAL)second, low, high);
            break;
        }
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
