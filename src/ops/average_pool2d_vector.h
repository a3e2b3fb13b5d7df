/* Mean over windows, 8 or 16 channels at a time; padding is not counted. Backward adds each
 * window's share to its pixels, in the order of the windows. */
#include "ops/_vector.h"
#include "ops/args.h"
#include "ops/window.h"

/* Pixels of one window inside the image: [first, end) by dim, and 1 / their number. */
typedef struct reach {
    int64_t first[2], end[2];
    float share;
} reach;

static keel_window window_of(const keel_call *c)
{
    const keel_pool2d_args *a = c->node->args;
    return keel_window_of(c->node, a->pool, a->strides, NULL, a->pad);
}

static reach reach_of(const keel_window *v, int64_t h, int64_t w)
{
    const int64_t o[2] = { h * v->stride[0] - v->pad[0], w * v->stride[1] - v->pad[1] };
    reach r;
    for (int d = 0; d < 2; d++) {
        r.first[d] = o[d] < 0 ? 0 : o[d];
        r.end[d] = o[d] + v->size[d] > v->in[d] ? v->in[d] : o[d] + v->size[d];
    }
    r.share = 1 / (float)((r.end[0] - r.first[0]) * (r.end[1] - r.first[1]));
    return r;
}

static void forward(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t n = c->node->out.shape.dim[2], line = v.in[1] * n;
    float *y = c->out;
    for (int64_t row = 0; row < c->rows; row++) {
        const float *x = (const float *)c->in[0] + row * v.in[0] * line;
        for (int64_t h = 0; h < v.out[0]; h++)
            for (int64_t w = 0; w < v.out[1]; w++, y += n) {
                const reach r = reach_of(&v, h, w);
                VECTOR_EACH(k, n, m, {
                    vf sum = vf_zero();
                    for (int64_t i = r.first[0]; i < r.end[0]; i++)
                        for (int64_t j = r.first[1]; j < r.end[1]; j++)
                            sum = vf_add(sum, vf_load_some(m, x + i * line + j * n + k));
                    vf_store_some(m, y + k, vf_mul(sum, vf_set(r.share)));
                });
            }
    }
}

static void backward(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t n = c->node->out.shape.dim[2], line = v.in[1] * n;
    const float *dy = c->out_grad;
    if (!c->in_grad[0]) return;
    for (int64_t row = 0; row < c->rows; row++) {
        float *dx = (float *)c->in_grad[0] + row * v.in[0] * line;
        if (!c->in_adds[0]) memset(dx, 0, (size_t)(v.in[0] * line) * sizeof *dx);
        for (int64_t h = 0; h < v.out[0]; h++)
            for (int64_t w = 0; w < v.out[1]; w++, dy += n) {
                const reach r = reach_of(&v, h, w);
                VECTOR_EACH(k, n, m, {
                    const vf g = vf_mul(vf_load_some(m, dy + k), vf_set(r.share));
                    for (int64_t i = r.first[0]; i < r.end[0]; i++)
                        for (int64_t j = r.first[1]; j < r.end[1]; j++) {
                            float *at = dx + i * line + j * n + k;
                            vf_store_some(m, at, vf_add(g, vf_load_some(m, at)));
                        }
                });
            }
    }
}

const keel_kernel VECTOR_KERNEL(average_pool2d) = {
    .op = "average_pool2d",
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY,
    .prepare = vector_prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
