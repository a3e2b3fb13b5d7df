/* See _resize.h. */
#include "layers/preprocessing/_resize.h"

keel_status keel_emit_resizing(keel_emit *e, const keel_resizing *r)
{
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    const keel_shape shape = in->shape;
    /* The dim that shrinks more goes first, so that less is written. */
    const int order = r->size[0] > shape.dim[0];
    keel_value x = e->in[0];
    for (int i = 0; i < 2; i++) {
        const int d = i ^ order;
        const keel_resize_args op = { .axis = d,
                                      .size = r->size[d],
                                      .begin = r->begin[d],
                                      .length = r->length[d],
                                      .fill = r->fill,
                                      .method = r->method,
                                      .antialias = r->antialias };
        if (op.begin == 0 && op.length == op.size && op.size == shape.dim[d]) continue;
        KEEL_TRY(keel_emit_on(e, &keel_op_resize, &op, &x, 1, e->out));
        x = e->out[0];
    }
    e->out[0] = x;
    return KEEL_OK;
}

static int64_t between(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

void keel_resizing_crop(keel_resizing *r, int64_t height, int64_t width)
{
    r->length[0] = between(width * r->size[0] / r->size[1], 1, height);
    r->length[1] = between(height * r->size[1] / r->size[0], 1, width);
    r->begin[0] = (height - r->length[0]) / 2;
    r->begin[1] = (width - r->length[1]) / 2;
}

/* See the image with borders on both sides, as many as make its shape that of the output. Keras
 * rounds each border down, so that its shape may be off by one. */
static void pad(keel_resizing *r, int64_t height, int64_t width)
{
    const int64_t have[2] = { height, width };
    const int64_t want[2] = { width * r->size[0] / r->size[1], height * r->size[1] / r->size[0] };
    for (int d = 0; d < 2; d++) {
        const int64_t border = want[d] > have[d] ? (want[d] - have[d]) / 2 : 0;
        r->begin[d] = -border;
        r->length[d] = have[d] + 2 * border;
    }
}

keel_status keel_emit_aspect(keel_emit *e, const keel_aspect *a, int64_t height, int64_t width)
{
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t *have = in->shape.dim;
    keel_resizing r = { .size = { height, width },
                        .length = { have[0], have[1] },
                        .method = (keel_resize_method)a->interpolation,
                        .antialias = a->antialias,
                        .fill = a->fill_value };
    if (a->crop_to_aspect_ratio && a->pad_to_aspect_ratio)
        return keel_fail(KEEL_EARG, "only one of crop_to_aspect_ratio and pad_to_aspect_ratio can "
                                    "be true");
    if (a->crop_to_aspect_ratio) keel_resizing_crop(&r, have[0], have[1]);
    if (a->pad_to_aspect_ratio) pad(&r, have[0], have[1]);
    return keel_emit_resizing(e, &r);
}
