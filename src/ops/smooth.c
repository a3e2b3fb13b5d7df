/* Each image [H, W, C] becomes x + share (window(x) - x), clipped: a weighted mean of the
 * neighbours of each pixel, zeros beyond the border, where share and window are drawn for its row.
 * Keras: RandomSharpness, RandomGaussianBlur,
 * ops.image.gaussian_blur. */
#ifndef REAL
#include "ops/smooth.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

enum { WINDOW_MAX = 255 };

static keel_status infer(keel_node *n)
{
    const keel_smooth_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    for (int d = 0; d < 2; d++)
        if (a->size[d] < 1 || a->size[d] > WINDOW_MAX)
            return keel_fail(KEEL_EARG, "smooth: a window of %lld x %lld is not in [1, %d]",
                             (long long)a->size[0], (long long)a->size[1], WINDOW_MAX);
    n->scratch = a->size[0] * a->size[1] * (int64_t)sizeof(double);
    return keel_infer_out(n, &n->in[0].shape);
}

static void bell(double *w, int64_t n, double deviation)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = ((double)i - (double)(n - 1) / 2) / deviation;
        sum += w[i] = exp(-0.5 * x * x);
    }
    for (int64_t i = 0; i < n; i++) w[i] /= sum;
}

/* The window of a row of the call, in its scratch, and its share. */
static double window_of(const keel_call *c, int64_t row)
{
    const keel_smooth_args *a = c->node->args;
    double *w = c->scratch, across[WINDOW_MAX], down[WINDOW_MAX];
    const double first = keel_draw(c, row, a->first, a->range[0]);
    const int64_t count = a->size[0] * a->size[1];
    if (a->sharpens) {
        for (int64_t i = 0; i < count; i++) w[i] = (i == count / 2 ? 5.0 : 1.0) / 13;
        return 1 - 2 * first;
    }
    if (!a->always && !(keel_draw(c, row, a->first + 1, a->range[1]) < first)) return 0;
    for (uint32_t d = 0; d < 2; d++)
        bell(d ? down : across, a->size[d],
             a->always ? a->deviation[d] : keel_draw(c, row, a->first + 2 + d, a->range[2]) + 1e-6);
    /* Keras makes it width x height and takes the numbers for height x width. */
    for (int64_t i = 0; i < count; i++) w[i] = down[i / a->size[0]] * across[i % a->size[0]];
    return 1;
}

#define REAL_FILE "ops/smooth.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_smooth_args *a = args;
    a->size[0] = a->size[1] = 3;
    a->sharpens = keel_case_has(text, "sharpens");
    keel_case_ints(text, "size", a->size, 2);
    keel_case_number(text, "first", &a->range[0].low);
    a->range[0].high = a->range[0].low;
    keel_case_number(text, "first_to", &a->range[0].high);
    a->range[1].high = keel_case_has(text, "maybe");
    keel_case_number(text, "deviation", &a->range[2].low);
    a->range[2].high = a->range[2].low;
    keel_case_number(text, "deviation_to", &a->range[2].high);
    a->values = (keel_range){ -1, 1 };
}

const keel_op keel_op_smooth = {
    .name = "smooth",
    .args_size = sizeof(keel_smooth_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
    .cases = (const keel_case[]){ { "4,5,2", NULL, "sharpens first 0 first_to 1" },
                                  { "1,3,1", NULL, "sharpens first 0.75" },
                                  { "4,5,2", NULL, "maybe first 0.5 deviation 0.5 deviation_to 2" },
                                  { "5,4,1", NULL, "size 5,2 first 0.5 deviation 1.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* The weighted mean of the neighbours of element `at` of an image, which is in column j of row i.
 */
static REAL REAL_(mean)(const keel_call *c, const REAL *x, int64_t i, int64_t j, int64_t at)
{
    const keel_smooth_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const double *w = c->scratch;
    double sum = 0;
    for (int64_t p = 0; p < a->size[0]; p++)
        for (int64_t q = 0; q < a->size[1]; q++, w++) {
            const int64_t down = p - (a->size[0] - 1) / 2, across = q - (a->size[1] - 1) / 2;
            if (i + down < 0 || i + down >= s->dim[0] || j + across < 0 || j + across >= s->dim[1])
                continue;
            sum += *w * (double)x[at + (down * s->dim[1] + across) * s->dim[2]];
        }
    return (REAL)sum;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_smooth_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t count = keel_row_count(&c->node->in[0]), line = s->dim[1] * s->dim[2];
    const REAL low = (REAL)a->values.low, high = (REAL)a->values.high;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += count, y += count) {
        const REAL share = (REAL)window_of(c, row);
        for (int64_t k = 0; k < count; k++) {
            REAL v = x[k];
            if (share != 0) {
                const REAL m = REAL_(mean)(c, x, k / line, k % line / s->dim[2], k);
                v = share == 1 ? m : v + share * (m - v);
            }
            y[k] = v < low ? low : v > high ? high : v;
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_smooth_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t count = keel_row_count(&c->node->in[0]), line = s->dim[1] * s->dim[2];
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, x += count, dx += count, dy += count) {
        const REAL share = (REAL)window_of(c, row);
        if (!c->in_adds[0]) memset(dx, 0, (size_t)count * sizeof *dx);
        for (int64_t k = 0; k < count; k++) {
            const int64_t i = k / line, j = k % line / s->dim[2];
            const double *w = c->scratch;
            REAL v = x[k];
            if (share != 0) v += share * (REAL_(mean)(c, x, i, j, k) - v);
            if (!(v >= (REAL)a->values.low && v <= (REAL)a->values.high)) continue;
            dx[k] += (1 - share) * dy[k];
            for (int64_t p = 0; share != 0 && p < a->size[0]; p++)
                for (int64_t q = 0; q < a->size[1]; q++, w++) {
                    const int64_t down = p - (a->size[0] - 1) / 2;
                    const int64_t across = q - (a->size[1] - 1) / 2;
                    if (i + down < 0 || i + down >= s->dim[0] || j + across < 0 ||
                        j + across >= s->dim[1])
                        continue;
                    dx[k + (down * s->dim[1] + across) * s->dim[2]] += share * (REAL)*w * dy[k];
                }
        }
    }
}
#endif
