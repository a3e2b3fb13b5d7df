/* Maximum pooling, 8 or 16 channels at a time; the tap that won is noted as max_pool2d.c does.
 *
 * A window's edges are worked out once an output place. Backward: where no pixel is in two windows
 * every dx is written once, the gradient or 0; elsewhere windows add to sums, in order. */
#ifndef VALUE
#include "ops/x86/_pool.h"

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    KEEL_TRY(vector_prepare(p));
    p->scratch = sums_bytes(p);
    return n->n_saved && n->saved[0].dtype != KEEL_UINT8 ? KEEL_EUNSUP : KEEL_OK;
}

#define VALUE_FILE "ops/x86/max_pool2d.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(max_pool2d, prepare);
#else
/* The largest of the taps [i0, i1) x [j0, j1) for the channels of m, whose tap {0, 0} is at x; NaN
 * beats every number, and the last NaN wins. */
static vf VALUE_(largest_or_nan)(const VALUE *x, int64_t line, int64_t channels, int64_t i0,
                                 int64_t i1, int64_t j0, int64_t j1, int64_t width, vm m, vi *tap)
{
    vf best = vx_load_some(m, x + i0 * line + j0 * channels);
    vi winner = vi_set((int32_t)(i0 * width + j0));
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = i == i0 ? j0 + 1 : j0; j < j1; j++) {
            const vf p = vx_load_some(m, x + i * line + j * channels);
            const vm better = vf_beats(p, best);
            best = vf_choose(better, p, best);
            winner = vi_choose(better, vi_set((int32_t)(i * width + j)), winner);
        }
    *tap = winner;
    return best;
}

/* The same by plain comparisons, whose sum tells where one was NaN. */
INLINE vf VALUE_(largest)(const VALUE *x, int64_t line, int64_t channels, int64_t i0, int64_t i1,
                          int64_t j0, int64_t j1, int64_t width, vm m, vi *tap)
{
    vf best = vx_load_some(m, x + i0 * line + j0 * channels), sum = best;
    vi winner = vi_set((int32_t)(i0 * width + j0));
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = i == i0 ? j0 + 1 : j0; j < j1; j++) {
            const vf p = vx_load_some(m, x + i * line + j * channels);
            winner = vi_choose(vf_greater(p, best), vi_set((int32_t)(i * width + j)), winner);
            best = vf_max(p, best);
            sum = vf_add(sum, p);
        }
    *tap = winner;
    if (vm_any(vf_beats(sum, sum)))
        return VALUE_(largest_or_nan)(x, line, channels, i0, i1, j0, j1, width, m, tap);
    return best;
}

/* One window; the usual sizes are unrolled. */
static inline vf VALUE_(window_largest)(const keel_window *v, span h, span w, const VALUE *x,
                                        int64_t line, int64_t channels, vm m, vi *tap)
{
    const int64_t height = h.end - h.first, width = w.end - w.first;
    if (height == 2 && width == 2 && v->size[0] == 2 && v->size[1] == 2)
        return VALUE_(largest)(x, line, channels, 0, 2, 0, 2, 2, m, tap);
    if (height == 3 && width == 3 && v->size[0] == 3 && v->size[1] == 3)
        return VALUE_(largest)(x, line, channels, 0, 3, 0, 3, 3, m, tap);
    return VALUE_(largest)(x, line, channels, h.first, h.end, w.first, w.end, v->size[1], m, tap);
}

/* One place: y, and the taps that won where taps is not NULL; relu is a constant where this is
 * called.
 */
INLINE void VALUE_(pool)(VALUE *y, uint8_t *taps, const keel_window *v, span h, span w,
                         const VALUE *x, int64_t line, int64_t channels, bool relu)
{
    VECTOR_EACH(k, channels, m, {
        vi tap;
        vf best = VALUE_(window_largest)(v, h, w, x + k, line, channels, m, &tap);
        if (relu) { /* 255: nobody won */
            tap = vi_choose(vf_beats(best, vf_zero()), tap, vi_set(255));
            best = vf_max(vf_zero(), best);
        }
        vx_store_same(m, y + k, best);
        if (taps) vi_store_bytes(m, taps + k, tap);
    });
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_window v = window_of(c->node);
    const int64_t channels = c->node->out[0].shape.dim[2], line = v.in[1] * channels;
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    uint8_t *taps = c->node->n_saved ? c->saved[0] : NULL;
    const bool relu = ((const keel_pool2d_args *)c->node->args)->relu;
    for (int64_t row = 0; row < c->rows; row++, x += v.in[0] * line)
        for (int64_t i = 0; i < v.out[0]; i++) {
            const span h = span_of(&v, 0, i);
            for (int64_t j = 0; j < v.out[1]; j++, y += channels) {
                const span w = span_of(&v, 1, j);
                const VALUE *at = x + h.at * line + w.at * channels;
                if (relu)
                    VALUE_(pool)(y, taps, &v, h, w, at, line, channels, true);
                else
                    VALUE_(pool)(y, taps, &v, h, w, at, line, channels, false);
                if (taps) taps += channels;
            }
        }
}

/* Give the gradient g to the pixel that won, and 0 to the window's others. */
INLINE void VALUE_(give)(VALUE *dx, int64_t line, int64_t channels, int64_t height, int64_t width,
                         vm m, vf g, vi winner)
{
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) {
            const vm won = vi_equal(winner, vi_set((int32_t)(i * width + j)));
            vx_store_same(m, dx + i * line + j * channels, vf_choose(won, g, vf_zero()));
        }
}

/* No pixel is in two windows. */
static void VALUE_(scatter)(const keel_call *c, const keel_window *v)
{
    const int64_t channels = c->node->out[0].shape.dim[2], line = v->in[1] * channels;
    const int64_t height = v->size[0], width = v->size[1];
    const VALUE *dy = c->out_grad[0];
    const uint8_t *taps = c->saved[0];
    VALUE *dx = c->in_grad[0];
    for (int64_t row = 0; row < c->rows; row++, dx += v->in[0] * line) {
        zero_rest(dx, v, channels * (int64_t)sizeof *dx);
        for (int64_t i = 0; i < v->out[0]; i++) {
            VALUE *at = dx + i * height * line;
            for (int64_t j = 0; j < v->out[1]; j++, at += width * channels) {
                VECTOR_EACH(k, channels, m, {
                    const vf g = vx_load_some(m, dy + k);
                    const vi winner = vi_load_bytes(m, taps + k);
                    if (height == 2 && width == 2)
                        VALUE_(give)(at + k, line, channels, 2, 2, m, g, winner);
                    else
                        VALUE_(give)(at + k, line, channels, height, width, m, g, winner);
                });
                dy += channels, taps += channels;
            }
        }
    }
}

/* Add the gradient g to the pixel that won. */
INLINE void VALUE_(add)(float *sums, int64_t line, int64_t channels, span h, span w, int64_t width,
                        vm m, vf g, vi winner)
{
    for (int64_t i = h.first; i < h.end; i++)
        for (int64_t j = w.first; j < w.end; j++) {
            float *at = sums + i * line + j * channels;
            const vm won = vi_equal(winner, vi_set((int32_t)(i * width + j)));
            vf_store_some(m, at, vf_add(vf_choose(won, g, vf_zero()), vf_load_some(m, at)));
        }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_window v = window_of(c->node);
    const int64_t channels = c->node->out[0].shape.dim[2], line = v.in[1] * channels;
    const VALUE *dy = c->out_grad[0];
    const uint8_t *taps = c->saved[0];
    VALUE *dx = c->in_grad[0];
    if (!dx) return;
    if (apart(c->node, c->in_adds[0])) {
        VALUE_(scatter)(c, &v);
        return;
    }
    for (int64_t row = 0; row < c->rows; row++, dx += v.in[0] * line) {
        float *sums = SUMS_OPEN(dx, v.in[0] * line, c->in_adds[0], c->scratch);
        for (int64_t i = 0; i < v.out[0]; i++) {
            const span h = span_of(&v, 0, i);
            for (int64_t j = 0; j < v.out[1]; j++, dy += channels, taps += channels) {
                const span w = span_of(&v, 1, j);
                VECTOR_EACH(k, channels, m, {
                    const vf g = vx_load_some(m, dy + k);
                    const vi winner = vi_load_bytes(m, taps + k);
                    VALUE_(add)
                    (sums + h.at * line + w.at * channels + k, line, channels, h, w, v.size[1], m,
                     g, winner);
                });
            }
        }
        SUMS_CLOSE(dx, v.in[0] * line, sums);
    }
}
#endif
