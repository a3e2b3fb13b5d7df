/* Colours [.., 3] from red, green and blue to hue, saturation and value, or back; a hue of 1 is a
 * whole turn. Value v is the largest of the three, saturation (v - least) / v. Keras:
 * ops.image.rgb_to_hsv, ops.image.hsv_to_rgb. */
#ifndef REAL
#include "ops/hsv.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    const keel_shape *s = &n->in[0].shape;
    if (s->rank < 1 || s->dim[s->rank - 1] != 3)
        return keel_fail(KEEL_ESHAPE, "hsv: the last dim must have the 3 numbers of a colour");
    return keel_infer_out(n, s);
}

#define REAL_FILE "ops/hsv.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    ((keel_hsv_args *)args)->to_rgb = keel_case_has(text, "to_rgb");
}

const keel_op keel_op_hsv = {
    .name = "hsv",
    .args_size = sizeof(keel_hsv_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
    .cases = (const keel_case[]){ { "4,3", NULL, "positive" },
                                  { "2,2,3", NULL, "to_rgb positive" },
                                  { "3", NULL, "to_rgb" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
typedef struct REAL_(colour) {
    int most, least; /* of the three; of equals the first */
    REAL v, range;
} REAL_(colour);

static REAL_(colour) REAL_(colour_of)(const REAL x[3])
{
    REAL_(colour) c = { 0 };
    for (int k = 1; k < 3; k++) {
        if (x[k] > x[c.most]) c.most = k;
        if (x[k] < x[c.least]) c.least = k;
    }
    c.v = x[c.most];
    c.range = c.v - x[c.least];
    return c;
}

static void REAL_(to_hsv)(REAL y[3], const REAL x[3])
{
    const REAL_(colour) c = REAL_(colour_of)(x);
    y[0] = 0;
    if (c.range > 0) {
        y[0] = (REAL)c.most / 3 + (x[(c.most + 1) % 3] - x[(c.most + 2) % 3]) / (6 * c.range);
        if (y[0] < 0) y[0] += 1;
    }
    y[1] = c.v > 0 ? c.range / c.v : 0;
    y[2] = c.v;
}

static void REAL_(to_hsv_back)(REAL dx[3], const REAL dy[3], const REAL x[3])
{
    const REAL_(colour) c = REAL_(colour_of)(x);
    const int plus = (c.most + 1) % 3, minus = (c.most + 2) % 3;
    dx[c.most] += dy[2];
    if (c.v > 0) {
        dx[c.most] += dy[1] * x[c.least] / (c.v * c.v);
        dx[c.least] -= dy[1] / c.v;
    }
    if (!(c.range > 0)) return;
    const REAL by = dy[0] / (6 * c.range), by_range = by * (x[plus] - x[minus]) / c.range;
    dx[plus] += by;
    dx[minus] -= by;
    dx[c.most] -= by_range;
    dx[c.least] += by_range;
}

/* How much of the colour a hue has, 0 to 1, and how it changes with the hue. */
static REAL REAL_(part)(REAL hue, int k, REAL *slope)
{
    static const REAL middle[3] = { 3, 2, 4 };
    const REAL from = 6 * hue - middle[k], away = from < 0 ? -from : from;
    const REAL v = k == 0 ? away - 1 : 2 - away, sign = from < 0 ? -6 : 6;
    *slope = v > 0 && v < 1 ? (k == 0 ? sign : -sign) : 0;
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static void REAL_(to_rgb)(REAL y[3], const REAL x[3])
{
    REAL slope;
    for (int k = 0; k < 3; k++) y[k] = (1 - x[1] + x[1] * REAL_(part)(x[0], k, &slope)) * x[2];
}

static void REAL_(to_rgb_back)(REAL dx[3], const REAL dy[3], const REAL x[3])
{
    for (int k = 0; k < 3; k++) {
        REAL slope;
        const REAL part = REAL_(part)(x[0], k, &slope);
        dx[0] += dy[k] * x[2] * x[1] * slope;
        dx[1] += dy[k] * x[2] * (part - 1);
        dx[2] += dy[k] * (1 - x[1] + x[1] * part);
    }
}

static void REAL_(forward)(const keel_call *c)
{
    const bool to_rgb = ((const keel_hsv_args *)c->node->args)->to_rgb;
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count; i += 3)
        if (to_rgb)
            REAL_(to_rgb)(y + i, x + i);
        else
            REAL_(to_hsv)(y + i, x + i);
}

static void REAL_(backward)(const keel_call *c)
{
    const bool to_rgb = ((const keel_hsv_args *)c->node->args)->to_rgb;
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    if (!dx) return;
    if (!c->in_adds[0]) memset(dx, 0, (size_t)count * sizeof *dx);
    for (int64_t i = 0; i < count; i += 3)
        if (to_rgb)
            REAL_(to_rgb_back)(dx + i, dy + i, x + i);
        else
            REAL_(to_hsv_back)(dx + i, dy + i, x + i);
}
#endif
