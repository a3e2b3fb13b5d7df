/* Mean over windows, 8 or 16 channels at a time; padding is not counted. Backward adds each
 * window's share to its pixels, in the order of the windows; where no pixel is in two windows it
 * writes them. */
#ifndef VALUE
#include "ops/x86/_pool.h"

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    p->scratch = sums_bytes(p);
    return KEEL_OK;
}

static inline float share_of(span h, span w)
{
    return 1 / (float)((h.end - h.first) * (w.end - w.first));
}

#define VALUE_FILE "ops/x86/average_pool2d.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(average_pool2d, prepare);
#else
/* The sum of height x width pixels; both are constants for usual sizes. */
INLINE vf VALUE_(sum)(const VALUE *x, int64_t line, int64_t n, int64_t height, int64_t width, vm m)
{
    vf sum = vf_zero();
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++)
            sum = vf_add(sum, vx_load_some(m, x + i * line + j * n));
    return sum;
}

static inline void VALUE_(mean)(VALUE *y, const VALUE *x, int64_t line, int64_t n, span h, span w)
{
    const int64_t height = h.end - h.first, width = w.end - w.first;
    const vf share = vf_set(share_of(h, w));
    if (height == 2 && width == 2)
        VECTOR_EACH(k, n, m, {
            vx_store_some(m, y + k, vf_mul(VALUE_(sum)(x + k, line, n, 2, 2, m), share));
        });
    else
        VECTOR_EACH(k, n, m, {
            vx_store_some(m, y + k, vf_mul(VALUE_(sum)(x + k, line, n, height, width, m), share));
        });
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_window v = window_of(c->node);
    const int64_t n = c->node->out[0].shape.dim[2], line = v.in[1] * n;
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += v.in[0] * line)
        for (int64_t i = 0; i < v.out[0]; i++) {
            const span h = span_of(&v, 0, i);
            for (int64_t j = 0; j < v.out[1]; j++, y += n) {
                const span w = span_of(&v, 1, j);
                VALUE_(mean)(y, x + (h.at + h.first) * line + (w.at + w.first) * n, line, n, h, w);
            }
        }
}

/* No pixel is in two windows. */
static void VALUE_(scatter)(const keel_call *c, const keel_window *v)
{
    const int64_t n = c->node->out[0].shape.dim[2], line = v->in[1] * n;
    const vf share = vf_set(1 / (float)(v->size[0] * v->size[1]));
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    for (int64_t row = 0; row < c->rows; row++, dx += v->in[0] * line) {
        zero_rest(dx, v, n * (int64_t)sizeof *dx);
        for (int64_t i = 0; i < v->out[0]; i++) {
            VALUE *at = dx + i * v->size[0] * line;
            for (int64_t j = 0; j < v->out[1]; j++, dy += n, at += v->size[1] * n)
                VECTOR_EACH(k, n, m, {
                    const vf g = vf_mul(vx_load_some(m, dy + k), share);
                    for (int64_t h = 0; h < v->size[0]; h++)
                        for (int64_t w = 0; w < v->size[1]; w++)
                            vx_store_some(m, at + h * line + w * n + k, g);
                });
        }
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_window v = window_of(c->node);
    const int64_t n = c->node->out[0].shape.dim[2], line = v.in[1] * n;
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    if (!dx) return;
    if (apart(c->node, c->in_adds[0])) {
        VALUE_(scatter)(c, &v);
        return;
    }
    for (int64_t row = 0; row < c->rows; row++, dx += v.in[0] * line) {
        float *sums = SUMS_OPEN(dx, v.in[0] * line, c->in_adds[0], c->scratch);
        for (int64_t i = 0; i < v.out[0] * v.out[1]; i++, dy += n) {
            const span h = span_of(&v, 0, i / v.out[1]), w = span_of(&v, 1, i % v.out[1]);
            const vf share = vf_set(share_of(h, w));
            VECTOR_EACH(k, n, m, {
                const vf g = vf_mul(vx_load_some(m, dy + k), share);
                for (int64_t y = h.first; y < h.end; y++)
                    for (int64_t x = w.first; x < w.end; x++) {
                        float *at = sums + (h.at + y) * line + (w.at + x) * n + k;
                        vf_store_some(m, at, vf_add(g, vf_load_some(m, at)));
                    }
            });
        }
        SUMS_CLOSE(dx, v.in[0] * line, sums);
    }
}
#endif
