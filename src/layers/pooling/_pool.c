/* See _pool.h. */
#include "layers/pooling/_pool.h"
#include "ops/args.h"

keel_status keel_emit_pool(keel_emit *e, int dims, const keel_op *op)
{
    const keel_pool *a = e->args;
    const keel_ints pool = keel_image_ints(&a->pool_size);
    const keel_ints strides = a->strides.count < 0 ? pool : keel_image_ints(&a->strides);
    keel_shape image;
    keel_value x, y;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_as_image(e, dims, &x, &image));
    keel_pool2d_args args = { .pool = { pool.at[0], pool.at[1] },
                              .strides = { strides.at[0], strides.at[1] } };
    keel_same_padding(&image, a->padding == 1, &pool, &strides, NULL, args.pad);
    KEEL_TRY(keel_emit_on(e, op, &args, &x, 1, &y));
    return keel_emit_from_image(e, dims, y, e->out);
}
