/* Maximum pooling, 8 or 16 channels at a time; the tap that won is noted as max_pool2d.c does.
 *
 * A window's edges are worked out once an output place. Backward: where windows tile the image,
 * every dx is written once, the gradient or 0; elsewhere dx is cleared and windows add to it in
 * order. */
#include "ops/_vector.h"
#include "ops/args.h"
#include "ops/window.h"
#include <math.h>

/* The taps of one window that are inside the image, and where its first pixel is. */
typedef struct reach {
    int64_t first[2], end[2]; /* taps */
    int64_t at;               /* element of the tap {0, 0}, maybe outside */
} reach;

static keel_window window_of(const keel_call *c)
{
    const keel_pool2d_args *a = c->node->args;
    return keel_window_of(c->node, a->pool, a->strides, NULL, a->pad);
}

/* The window at output o of dim d: its taps inside; returns its first pixel, maybe outside. */
static inline int64_t span(reach *r, const keel_window *v, int d, int64_t o)
{
    const int64_t from = o * v->stride[d] - v->pad[d], rest = v->in[d] - from;
    r->first[d] = from < 0 ? -from : 0;
    r->end[d] = rest < v->size[d] ? rest : v->size[d];
    return from;
}

/* The largest of the taps [i0, i1) x [j0, j1) for the channels of m, whose tap {0, 0} is at x. */
static inline __attribute__((always_inline)) vf largest(const float *x, int64_t line,
                                                        int64_t channels, int64_t i0, int64_t i1,
                                                        int64_t j0, int64_t j1, int64_t width, vm m,
                                                        vi *tap)
{
    vf best = vf_load_some(m, x + i0 * line + j0 * channels);
    vi winner = vi_set((int32_t)(i0 * width + j0));
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = i == i0 ? j0 + 1 : j0; j < j1; j++) {
            const vf p = vf_load_some(m, x + i * line + j * channels);
            const vm better = vf_beats(p, best);
            best = vf_choose(better, p, best);
            winner = vi_choose(better, vi_set((int32_t)(i * width + j)), winner);
        }
    *tap = winner;
    return best;
}

/* One window; the usual sizes are unrolled. */
static inline vf window_largest(const keel_window *v, const reach *r, const float *x, int64_t line,
                                int64_t channels, vm m, vi *tap)
{
    const int64_t h = r->end[0] - r->first[0], w = r->end[1] - r->first[1];
    if (h == 2 && w == 2 && v->size[0] == 2 && v->size[1] == 2)
        return largest(x, line, channels, 0, 2, 0, 2, 2, m, tap);
    if (h == 3 && w == 3 && v->size[0] == 3 && v->size[1] == 3)
        return largest(x, line, channels, 0, 3, 0, 3, 3, m, tap);
    return largest(x, line, channels, r->first[0], r->end[0], r->first[1], r->end[1], v->size[1], m,
                   tap);
}

static void forward(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t channels = c->node->out.shape.dim[2], line = v.in[1] * channels;
    const float *x = c->in[0];
    float *y = c->out;
    uint8_t *taps = c->node->n_saved ? c->saved[0] : NULL;
    int64_t place = 0;
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t h = 0; h < v.out[0]; h++) {
            reach r;
            const int64_t top = row * v.in[0] + span(&r, &v, 0, h);
            for (int64_t w = 0; w < v.out[1]; w++, place++) {
                r.at = top * line + span(&r, &v, 1, w) * channels;
                VECTOR_EACH(k, channels, m, {
                    vi tap;
                    const vf best = window_largest(&v, &r, x + r.at + k, line, channels, m, &tap);
                    vf_store_some(m, y + place * channels + k, best);
                    if (taps) vi_store_bytes(m, taps + place * channels + k, tap);
                });
            }
        }
}

static bool tiles(const keel_window *v)
{
    for (int d = 0; d < 2; d++)
        if (v->pad[d] || v->stride[d] != v->size[d] || v->out[d] * v->size[d] != v->in[d])
            return false;
    return true;
}

/* Give the gradient g to the pixel that won, of the taps [i0, i1) x [j0, j1); once: write, do not
 * add. */
static inline __attribute__((always_inline)) void give(float *dx, int64_t line, int64_t channels,
                                                       int64_t i0, int64_t i1, int64_t j0,
                                                       int64_t j1, int64_t width, vm m, vf g,
                                                       vi winner, bool once)
{
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++) {
            float *at = dx + i * line + j * channels;
            vf d = vf_choose(vi_equal(winner, vi_set((int32_t)(i * width + j))), g, vf_zero());
            if (!once) d = vf_add(d, vf_load_some(m, at));
            vf_store_some(m, at, d);
        }
}

static inline void scatter(const keel_window *v, const reach *r, float *dx, int64_t line,
                           int64_t channels, vm m, vf g, vi winner, bool once)
{
    if (once && v->size[0] == 2 && v->size[1] == 2)
        give(dx, line, channels, 0, 2, 0, 2, 2, m, g, winner, true);
    else
        give(dx, line, channels, r->first[0], r->end[0], r->first[1], r->end[1], v->size[1], m, g,
             winner, once);
}

static void backward(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t channels = c->node->out.shape.dim[2], line = v.in[1] * channels;
    const bool once = tiles(&v) && !c->in_adds[0];
    const float *dy = c->out_grad;
    const uint8_t *taps = c->saved[0];
    float *dx = c->in_grad[0];
    int64_t place = 0;
    if (!dx) return;
    for (int64_t row = 0; row < c->rows; row++) {
        if (!once && !c->in_adds[0])
            memset(dx + row * v.in[0] * line, 0, (size_t)(v.in[0] * line) * sizeof *dx);
        for (int64_t h = 0; h < v.out[0]; h++) {
            reach r;
            const int64_t top = row * v.in[0] + span(&r, &v, 0, h);
            for (int64_t w = 0; w < v.out[1]; w++, place++) {
                r.at = top * line + span(&r, &v, 1, w) * channels;
                VECTOR_EACH(k, channels, m, {
                    const vf g = vf_load_some(m, dy + place * channels + k);
                    const vi winner = vi_load_bytes(m, taps + place * channels + k);
                    scatter(&v, &r, dx + r.at + k, line, channels, m, g, winner, once);
                });
            }
        }
    }
}

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    KEEL_TRY(vector_prepare(p));
    return n->n_saved && n->saved[0].dtype != KEEL_UINT8 ? KEEL_EUNSUP : KEEL_OK;
}

const keel_kernel VECTOR_KERNEL(max_pool2d) = {
    .op = "max_pool2d",
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
