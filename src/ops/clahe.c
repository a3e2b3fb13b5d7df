/* Contrast limited adaptive histogram equalization (Zuiderveld 1994) of each channel of images
 * [H, W, C]. Each tile of a grid has a histogram of 256 bins. What bins have above a limit is
 * spread over all; the sums of the bins then say what a value becomes in the middle of the tile,
 * and between the middles of four tiles it is interpolated. Tiles beyond the border see the image
 * mirrored. Values are taken as whole numbers, so no gradient flows. All is float32, as in Keras.
 * Keras: ContrastLimitedAdaptiveHistogramEqualization. */
#ifndef REAL
#include "ops/clahe.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

enum { BINS = 256 };

static int64_t side_of(const keel_node *n, int d) /* of a tile */
{
    const keel_clahe_args *a = n->args;
    return (n->in[0].shape.dim[d] + a->grid[d] - 1) / a->grid[d];
}

static keel_status infer(keel_node *n)
{
    const keel_clahe_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    for (int d = 0; d < 2; d++) {
        const int64_t size = n->in[0].shape.dim[d];
        if (a->grid[d] < 1 || a->grid[d] > 1 << 15)
            return keel_fail(KEEL_EARG, "clahe: %lld tiles are not in [1, %d]",
                             (long long)a->grid[d], 1 << 15);
        if (side_of(n, d) * a->grid[d] > 2 * size)
            return keel_fail(KEEL_ESHAPE,
                             "clahe: %lld tiles reach beyond the mirror image of %lld pixels",
                             (long long)a->grid[d], (long long)size);
    }
    if (!(a->values.low < a->values.high))
        return keel_fail(KEEL_EARG, "clahe: values from %g to %g", a->values.low, a->values.high);
    n->scratch = a->grid[0] * a->grid[1] * BINS * (int64_t)sizeof(float);
    return keel_infer_out(n, &n->in[0].shape);
}

/* Makes of the counts of a tile what values become. */
static void level(const keel_clahe_args *a, float *bin, int64_t pixels)
{
    const float limit = (float)(a->clip_limit * (double)pixels / BINS);
    float over = 0, sum = 0, least = 0;
    for (int b = 0; a->clip_limit > 0 && b < BINS; b++) {
        const float kept = fminf(bin[b], limit);
        over += bin[b] - kept;
        bin[b] = kept;
    }
    for (int b = 0; b < BINS; b++) {
        sum += bin[b] + over / BINS;
        if (b == 0) least = sum;
        bin[b] = sum;
    }
    const float others = (float)pixels - least;
    for (int b = 0; b < BINS; b++) {
        const float v = (bin[b] - least) * 255.0F / (others == 0 ? 1 : others);
        bin[b] = v < 0 ? 0 : v > 255 ? 255 : v;
    }
}

/* The tiles whose middles lie around place i, and the share of the second. */
typedef struct around {
    int64_t tile[2];
    float share;
} around;

static around around_of(int64_t i, int64_t side, int64_t tiles)
{
    const float at = ((float)i - (float)side / 2.0F) / (float)side + 1.0F, first = floorf(at);
    const int64_t t = (int64_t)first - 1;
    return (around){ { t < 0 ? 0 : t, t + 1 < tiles ? t + 1 : tiles - 1 }, at - first };
}

/* The bin of a value; 0 for NaN, too. */
static int bin_of(const keel_clahe_args *a, float x)
{
    const float low = (float)a->values.low, high = (float)a->values.high;
    const float v = low == 0 && high == 255 ? x : (x - low) / (high - low) * 255.0F;
    return v >= 255 ? 255 : v > 0 ? (int)v : 0;
}

#define REAL_FILE "ops/clahe.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_clahe_args *a = args;
    *a = (keel_clahe_args){ .grid = { 2, 2 }, .clip_limit = 4, .values = { -1, 1 } };
    keel_case_ints(text, "grid", a->grid, 2);
    keel_case_number(text, "limit", &a->clip_limit);
    keel_case_number(text, "low", &a->values.low);
    keel_case_number(text, "high", &a->values.high);
}

const keel_op keel_op_clahe = {
    .name = "clahe",
    .args_size = sizeof(keel_clahe_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .costly = true,
    .cases = (const keel_case[]){ { "4,6,2", NULL, "low -400 high 400" },
                                  { "5,7,1", NULL, "grid 2,3 limit 1.5 low -400 high 400" },
                                  { "3,3,3", NULL, "grid 1,1 limit 0 low -400 high 400" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* What values of channel k become in each tile. */
static void REAL_(levels)(const keel_call *c, const REAL *x, int64_t k, float *bins)
{
    const keel_clahe_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t side[2] = { side_of(c->node, 0), side_of(c->node, 1) };
    memset(bins, 0, (size_t)(a->grid[0] * a->grid[1] * BINS) * sizeof *bins);
    for (int64_t i = 0; i < a->grid[0] * side[0]; i++)
        for (int64_t j = 0; j < a->grid[1] * side[1]; j++) {
            const int64_t down = i < s->dim[0] ? i : 2 * s->dim[0] - 1 - i;
            const int64_t across = j < s->dim[1] ? j : 2 * s->dim[1] - 1 - j;
            const int64_t tile = i / side[0] * a->grid[1] + j / side[1];
            const float v = (float)x[(down * s->dim[1] + across) * s->dim[2] + k];
            bins[tile * BINS + bin_of(a, v)] += 1;
        }
    for (int64_t t = 0; t < a->grid[0] * a->grid[1]; t++)
        level(a, bins + t * BINS, side[0] * side[1]);
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_clahe_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t side[2] = { side_of(c->node, 0), side_of(c->node, 1) };
    const int64_t count = keel_row_count(&c->node->in[0]);
    const float low = (float)a->values.low, high = (float)a->values.high;
    const bool bytes = low == 0 && high == 255;
    float *bins = c->scratch;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += count, y += count)
        for (int64_t k = 0; k < s->dim[2]; k++) {
            REAL_(levels)(c, x, k, bins);
            for (int64_t i = 0; i < s->dim[0]; i++) {
                const around down = around_of(i, side[0], a->grid[0]);
                const float *top = bins + down.tile[0] * a->grid[1] * BINS;
                const float *bottom = bins + down.tile[1] * a->grid[1] * BINS;
                for (int64_t j = 0; j < s->dim[1]; j++) {
                    const around to = around_of(j, side[1], a->grid[1]);
                    const int64_t at = (i * s->dim[1] + j) * s->dim[2] + k;
                    const int bin = bin_of(a, (float)x[at]);
                    const int64_t left = to.tile[0] * BINS + bin;
                    const int64_t right = to.tile[1] * BINS + bin;
                    const float above = top[left] * (1 - to.share) + top[right] * to.share;
                    const float below = bottom[left] * (1 - to.share) + bottom[right] * to.share;
                    const float v = above * (1 - down.share) + below * down.share;
                    y[at] = (REAL)(bytes ? v : v / 255.0F * (high - low) + low);
                }
            }
        }
}

/* No gradient flows. */
static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    REAL *dx = c->in_grad[0];
    if (dx && !c->in_adds[0]) memset(dx, 0, (size_t)count * sizeof *dx);
}
#endif
