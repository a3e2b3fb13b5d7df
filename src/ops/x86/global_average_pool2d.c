/* Mean over the whole image, 8 or 16 channels at a time. A channel is summed over stretches of 64
 * places, and those sums are added, which keeps float32 within a few units of its last place. */
#ifndef VALUE
#include "ops/x86/_vector.h"

enum { STRETCH = 64 };

#define VALUE_FILE "ops/x86/global_average_pool2d.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(global_average_pool2d, vector_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t places = in->dim[0] * in->dim[1], n = in->dim[2];
    const vf share = vf_set(1 / (float)places);
    for (int64_t row = 0; row < c->rows; row++) {
        const VALUE *x = (const VALUE *)c->in[0] + row * places * n;
        VALUE *y = (VALUE *)c->out[0] + row * n;
        VECTOR_EACH(k, n, m, {
            vf all = vf_zero();
            for (int64_t p = 0; p < places; p += STRETCH) {
                const int64_t end = p + STRETCH < places ? p + STRETCH : places;
                vf even = vf_zero(), odd = vf_zero();
                int64_t q = p;
                for (; q + 2 <= end; q += 2) {
                    even = vf_add(even, vx_load_some(m, x + q * n + k));
                    odd = vf_add(odd, vx_load_some(m, x + (q + 1) * n + k));
                }
                if (q < end) even = vf_add(even, vx_load_some(m, x + q * n + k));
                all = vf_add(all, vf_add(even, odd));
            }
            vx_store_some(m, y + k, vf_mul(all, share));
        });
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_shape *in = &c->node->in[0].shape;
    const int64_t places = in->dim[0] * in->dim[1], n = in->dim[2];
    const vf share = vf_set(1 / (float)places);
    for (int64_t row = 0; c->in_grad[0] && row < c->rows; row++) {
        const VALUE *dy = (const VALUE *)c->out_grad[0] + row * n;
        for (int64_t p = 0; p < places; p++) {
            VALUE *dx = (VALUE *)c->in_grad[0] + (row * places + p) * n;
            VECTOR_EACH(k, n, m, {
                vf g = vf_mul(vx_load_some(m, dy + k), share);
                if (c->in_adds[0]) g = vf_add(g, vx_load_some(m, dx + k));
                vx_store_some(m, dx + k, g);
            });
        }
    }
}
#endif
