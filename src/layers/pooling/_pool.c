/* See _pool.h. */
#include "layers/pooling/_pool.h"
#include "ops/args.h"

static keel_status emit_image(keel_emit *e, const keel_op *op, const keel_shape *image,
                              keel_ints pool, keel_ints strides, keel_value x, keel_value *y)
{
    const keel_pool *a = e->args;
    keel_pool2d_args args = { .pool = { pool.at[0], pool.at[1] },
                              .strides = { strides.at[0], strides.at[1] } };
    keel_same_padding(image, a->padding == 1, &pool, &strides, NULL, args.pad);
    return keel_emit_on(e, op, &args, &x, 1, y);
}

/* A volume [D, H, W, C] is pooled first along the width, as an image [D H, W, C], then along depth
 * and height, as [D, H, W C]. The largest of the largest pixels of each line is the first largest
 * of the window in the order of its taps. A mean of means counts only pixels inside. */
static keel_status emit_volume(keel_emit *e, const keel_op *op, const keel_shape *in, keel_value x)
{
    const keel_pool *a = e->args;
    const keel_ints *strides = a->strides.count < 0 ? &a->pool_size : &a->strides;
    const int64_t d = in->dim[0], h = in->dim[1], c = in->dim[3];
    const keel_shape lines = KEEL_SHAPE(d * h, in->dim[2], c);
    keel_value y;
    KEEL_TRY(keel_emit_view(e, &lines, x, &y));
    KEEL_TRY(emit_image(e, op, &lines, (keel_ints){ 2, { 1, a->pool_size.at[2] } },
                        (keel_ints){ 2, { 1, strides->at[2] } }, y, &y));
    const int64_t width = keel_graph_spec(e->graph, y)->shape.dim[1];
    const keel_shape planes = KEEL_SHAPE(d, h, width * c);
    KEEL_TRY(keel_emit_view(e, &planes, y, &y));
    KEEL_TRY(emit_image(e, op, &planes,
                        (keel_ints){ 2, { a->pool_size.at[0], a->pool_size.at[1] } },
                        (keel_ints){ 2, { strides->at[0], strides->at[1] } }, y, &y));
    const keel_shape *out = &keel_graph_spec(e->graph, y)->shape;
    const keel_shape volume = KEEL_SHAPE(out->dim[0], out->dim[1], width, c);
    return keel_emit_view(e, &volume, y, e->out);
}

keel_status keel_emit_pool(keel_emit *e, int dims, const keel_op *op)
{
    const keel_pool *a = e->args;
    const keel_ints pool = keel_image_ints(&a->pool_size);
    const keel_ints strides = a->strides.count < 0 ? pool : keel_image_ints(&a->strides);
    keel_shape image;
    keel_value x, y;
    KEEL_TRY(keel_emit_as_image(e, dims, &x, &image));
    if (dims == 3) return emit_volume(e, op, &image, x);
    KEEL_TRY(emit_image(e, op, &image, pool, strides, x, &y));
    return keel_emit_from_image(e, dims, y, e->out);
}
