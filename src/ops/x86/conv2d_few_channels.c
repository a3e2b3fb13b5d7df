/* The gradient of conv2d with respect to an image of very few channels: see _few.h, for which those
 * are the filters and the filters are channels. In each line the places that are a stride apart see
 * the same taps. */
#ifndef VALUE
#include "ops/x86/_few.h"

KEEL_USES_OP(conv2d);

enum { IMAGE_MOST = 4 }; /* channels; from 5 on, and of windows of one place, others are as quick */

static keel_status prepare(keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    const int64_t *w = p->node->weight[0].shape.dim;
    KEEL_TRY(vector_prepare(p));
    if (p->pass != KEEL_BACKWARD || a->groups != 1 || !few_pays(p->node, w[2], w[3], w[0] * w[1]) ||
        w[2] > IMAGE_MOST || w[0] * w[1] == 1)
        return KEEL_EUNSUP;
    if (p->node->held == KEEL_BFLOAT16)
        p->scratch = keel_row_count(&p->node->weight[0]) * (int64_t)sizeof(float);
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/_few.h"
#include "ops/x86/_values.h"
#define VALUE_FILE "ops/x86/conv2d_few_channels.c"
#include "ops/x86/_values.h"

const keel_kernel VECTOR_KERNEL(conv2d_few_channels) = {
    .op = &keel_op_conv2d,
    .name = "few_channels_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(FEW_CHANNELS_BACK),
    .prepare = prepare,
    .run = { [KEEL_BACKWARD] = backward_f32 },
    .narrow = { [KEEL_BACKWARD] = backward_bf16 },
};
#else
/* The taps that places `phase`, phase + stride, ... of line h of the image see. */
static int VALUE_(list_taps)(const keel_window *v, int64_t c, int64_t k, const VALUE *dy, int64_t h,
                             int64_t phase, VALUE_(tap) * tap)
{
    int n = 0;
    for (int64_t i = 0; i < v->size[0]; i++) {
        const int64_t line = keel_window_out(v, 0, h, i);
        for (int64_t j = 0; line >= 0 && j < v->size[1]; j++) {
            const int64_t at = phase + v->pad[1] - j * v->dilation[1];
            if (at % v->stride[1]) continue;
            const int64_t place = at / v->stride[1];
            tap[n++] = (VALUE_(tap)){ dy + (line * v->out[1] + place) * k, place,
                                      (i * v->size[1] + j) * c * k };
        }
    }
    return n;
}

static void VALUE_(backward)(const keel_call *call)
{
    const keel_conv2d_args *a = call->node->args;
    const int64_t *dim = call->node->weight[0].shape.dim, c = dim[2], k = dim[3];
    const keel_window v = keel_window_of(call->node, dim, a->strides, a->dilation, a->pad);
    const int64_t count = keel_row_count(&call->node->weight[0]);
    const float *w = call->weight[0];
    if (!call->in_grad[0]) return;
    if (sizeof(VALUE) < sizeof *w) {
        float *const rounded = call->scratch;
        for (int64_t i = 0; i < count; i++) rounded[i] = VALUE_(factor)(w[i]);
        w = rounded;
    }
    few_line l = { .y_step = v.stride[1] * c,
                   .in = v.out[1],
                   .step = 1,
                   .channels = k,
                   .apart = k,
                   .weights = w,
                   .adds = call->in_adds[0] };
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t h = 0; h < v.in[0]; h++)
            for (int64_t phase = 0; phase < v.stride[1] && phase < v.in[1]; phase++) {
                VALUE_(tap) tap[FEW_TAPS_MOST];
                const VALUE *dy = (const VALUE *)call->out_grad[0] + r * v.out[0] * v.out[1] * k;
                VALUE *dx = (VALUE *)call->in_grad[0] + ((r * v.in[0] + h) * v.in[1] + phase) * c;
                const int n = VALUE_(list_taps)(&v, c, k, dy, h, phase, tap);
                l.outs = (v.in[1] - phase + v.stride[1] - 1) / v.stride[1];
#define LINE_OF(n_f, outs) VALUE_(make_line)(&l, tap, n, dx, n_f, outs)
                BY_FILTERS(LINE_OF, OUTS, c)
#undef LINE_OF
            }
}
#endif
